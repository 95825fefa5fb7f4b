occq sql -d h.db --csv 'SELECT kernel, count(*) FROM launch GROUP BY 1 ORDER BY 1'
