"""Kafka's protocol in Python for tests: a codec driven by protocol/*.wire, batches, and a raw connection.

Written apart from the broker's own codec on purpose: what both get wrong alike would have to be wrong in
the definitions, and those are held against Apache's classes by tests/oracle.
"""
