"""Kafka's messages, a module for each API.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""
