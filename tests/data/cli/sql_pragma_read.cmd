occq sql -d h.db 'PRAGMA table_info(node)'
