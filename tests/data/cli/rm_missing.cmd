cp h.db r.db; occq rm -d r.db 1 99; occq rm -d r.db 1 1 -o run
