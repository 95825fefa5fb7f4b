cp h.db lost.db; sqlite3 lost.db "UPDATE stored_run SET level_reason = 'lost: unknown; killed' WHERE run_id = 1"; COLUMNS=60 occq runs -d lost.db
