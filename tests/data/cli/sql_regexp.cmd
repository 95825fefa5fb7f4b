occq sql -d h.db "SELECT kernel FROM kernel WHERE kernel REGEXP '^(so|ti)' ORDER BY 1"; occq sql -d h.db "SELECT NULL REGEXP 'a' AS a, 'a' REGEXP NULL AS b"; occq sql -d h.db "SELECT 'a' REGEXP '('"
