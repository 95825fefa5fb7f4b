-- Times of rows in existing tables by the settings warehouse.*; applied by each --init, after the migrations. The server
-- changes nothing where a table has the time already.
{ALTER TABLE $db.launch MODIFY TTL bucket + INTERVAL $launches DAY|};
{ALTER TABLE $db.minute MODIFY TTL bucket + INTERVAL $minutes DAY|};
{ALTER TABLE $db.rank_minute MODIFY TTL bucket + INTERVAL $ranks DAY|};
{ALTER TABLE $db.hour MODIFY TTL bucket + INTERVAL $hours DAY|};
{ALTER TABLE $db.hour_change MODIFY TTL hour + INTERVAL $changes DAY|};
{ALTER TABLE $db.run MODIFY TTL start + INTERVAL $hours DAY|};
{ALTER TABLE $db.erased MODIFY TTL before + INTERVAL $hours DAY|};
{ALTER TABLE $db.allocation MODIFY TTL since + INTERVAL $hours DAY|};
{ALTER TABLE $db.kernel MODIFY TTL toDateTime(intDiv(version, 1000)) + INTERVAL $hours DAY|};
{ALTER TABLE $db.launch_config MODIFY TTL toDateTime(intDiv(version, 1000)) + INTERVAL $hours DAY|};
{ALTER TABLE $db.watermark MODIFY TTL toDateTime(intDiv(version, 1000)) + INTERVAL $hours DAY|};

-- The time from which on no minute is deleted yet: --maintain adds up no earlier hour, also if $minutes is larger later.
INSERT INTO $db.hour_done SELECT 'kept', now() - 86400 * ($minutes - 1);
