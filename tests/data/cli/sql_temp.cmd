occq sql -d h.db 'CREATE TEMP TABLE t(a)'
