"""The APIs that a broker answers, one module each, with its `HANDLER`. `broker.dispatch` finds them."""
