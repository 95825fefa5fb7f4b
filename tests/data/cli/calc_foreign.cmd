for f in h.db /bin/sh nothing.cubin; do occq calc --gpu a100 --threads 32 --cubin $f 2>&1 | sed 's/[0-9]* bytes/N bytes/' | cut -c1-60; done; echo x | occq calc --gpu a100 --threads 32 --ptxas -
