occq sql -d h.db 'PRAGMA table_info(stored_node)'
