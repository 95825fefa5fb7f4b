for c in launches gaps export; do occq $c --cluster http://127.0.0.1:1/; echo "$?"; done
