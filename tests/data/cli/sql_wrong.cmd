occq sql -d h.db 'SELEC 1'
