occq show -d h.db 2 -n 1
