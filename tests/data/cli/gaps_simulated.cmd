cp h.db g.db; occq import -d g.db "$data/../import/v100_step.json.gz" >/dev/null 2>&1; occq top --gaps --by run -d g.db -o run,gpu,launches
