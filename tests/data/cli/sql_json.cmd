occq sql -d h.db --json "SELECT NULL AS a, 1.5 AS b, x'00ff' AS c, 'line' || char(10) || 'end' AS d"
