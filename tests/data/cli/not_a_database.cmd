echo 'this is not a database, not at all' >no.db; occq top -d no.db
