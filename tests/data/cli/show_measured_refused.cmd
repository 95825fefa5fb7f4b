occq show -d m.db too_many --json | sed -n "/refused/,/reported/p"
