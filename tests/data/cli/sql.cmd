occq sql -d h.db 'SELECT count(*) AS n, sum("end" - start) AS ns FROM launch'
