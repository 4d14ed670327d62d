"""The APIs that a broker answers, one module each; `HANDLERS` of `broker.dispatch` lists them."""
