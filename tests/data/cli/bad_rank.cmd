for c in "top --rank abc" "show x --rank 1x" "live -b --rank abc" "diff rank:abc run:1"; do occq $c -d h.db; echo "$?"; done; cp h.db q.db; occq rm 99 -d q.db
