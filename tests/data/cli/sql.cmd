occq sql -d h.db 'SELECT count(*) AS n, sum(end_ns - start_ns) AS ns FROM launch'
