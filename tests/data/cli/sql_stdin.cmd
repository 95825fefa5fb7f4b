printf "SELECT 1 AS a -- ; a comment\n;;\n.schema loss\nSELECT ';' AS b;" | occq sql -d h.db --csv; echo "SELECT 3" | occq sql -d h.db - --json; occq sql -d h.db </dev/null
