"""A whole Nui grid on this machine: authority, PostgreSQL, bank, sites, metascheduler.

deploy/quickstart runs it with the tour; tests/e2e starts, breaks and restarts it.
"""
