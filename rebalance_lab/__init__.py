"""Rebalance Lab: who owns what, and who says so?"""
