#!/usr/bin/env python3
"""cli_focus.py OCCQ CLI_HISTORY TWO_GPUS_HISTORY RECORDINGS: `occq top --cost --csv --focus` against FOCUS 1.2: columns that the
specification requires, nulls, allowed values, ISO 8601 times, decimal numbers, units, and sums that equal the bill to the cent."""
import csv
import datetime
import decimal
import io
import json
import os
import re
import subprocess
import sys
import tempfile

OCCQ, CLI_HISTORY, TWO_GPUS, RECORDINGS = sys.argv[1:5]
# Columns of FOCUS 1.2 by their definitions: name -> (data type, may be null). The first 21 are mandatory.
MANDATORY = {
    "BilledCost": ("Decimal", False), "BillingAccountId": ("String", False), "BillingAccountName": ("String", True),
    "BillingCurrency": ("Currency", False), "BillingPeriodEnd": ("DateTime", False), "BillingPeriodStart": ("DateTime", False),
    "ChargeCategory": ("String", False), "ChargeClass": ("String", True), "ChargeDescription": ("String", True),
    "ChargePeriodEnd": ("DateTime", False), "ChargePeriodStart": ("DateTime", False), "ContractedCost": ("Decimal", False),
    "EffectiveCost": ("Decimal", False), "InvoiceIssuerName": ("String", False), "ListCost": ("Decimal", False),
    "PricingQuantity": ("Decimal", True), "PricingUnit": ("Unit", True), "ProviderName": ("String", False),
    "PublisherName": ("String", False), "ServiceCategory": ("String", False), "ServiceName": ("String", False)}
OTHERS = {
    "ChargeFrequency": ("String", False), "ConsumedQuantity": ("Decimal", True), "ConsumedUnit": ("Unit", True),
    "ContractedUnitPrice": ("Decimal", True), "ListUnitPrice": ("Decimal", True), "PricingCategory": ("String", True),
    "ServiceSubcategory": ("String", False), "SkuId": ("String", True), "SkuMeter": ("String", True),
    "SkuPriceDetails": ("JSON", True), "SkuPriceId": ("String", True), "SubAccountId": ("String", True),
    "SubAccountName": ("String", True), "SubAccountType": ("String", True)}
ALLOWED = {"ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"}, "ChargeClass": {"", "Correction"},
           "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"}, "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
           "ServiceCategory": {"Compute"}, "ServiceSubcategory": {"Other (Compute)"}}
FORMATS = {"Decimal": r"-?\d+(\.\d+)?(E-?\d+)?", "DateTime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "Currency": r"[A-Z]{3}",
           "Unit": r"GPU-Hours", "String": r".+", "JSON": r"\{.*\}"}
COSTS = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
PARTS = ("idle", "waiting", "communication", "lost", "used", "unknown")

work = tempfile.TemporaryDirectory()
environment = dict(os.environ, HOME=work.name, XDG_CONFIG_HOME=work.name, XDG_STATE_HOME=work.name, TZ="America/New_York")
for name in ("OCCTRACE_DB", "OCCTRACE_CLUSTER"):
    environment.pop(name, None)
os.makedirs(os.path.join(work.name, "occtrace"))


def put_settings(text):
    with open(os.path.join(work.name, "occtrace", "occq.yaml"), "w", encoding="utf-8") as file:
        file.write(text)


def occq(*arguments, status=0):
    answer = subprocess.run([OCCQ, *arguments], env=environment, capture_output=True, text=True)
    assert answer.returncode == status, (arguments, answer.returncode, answer.stderr)
    return answer.stdout if status == 0 else answer.stderr


def focus(history, *arguments):
    text = occq("top", "--cost", "-d", history, "--csv", "--focus", "gpu cluster, \"one\"", *arguments)
    return list(csv.DictReader(io.StringIO(text)))


def bill(history, *arguments):
    return json.loads(occq("top", "--cost", "-d", history, "--json", *arguments))["costs"]


def check_cell(name, kind, may_be_null, text):
    if text == "":
        assert may_be_null, name
    else:
        assert re.fullmatch(FORMATS[kind], text), (name, text)
    if name in ALLOWED:
        assert text in ALLOWED[name], (name, text)
    if kind == "DateTime":
        datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    if kind == "JSON" and text:
        assert all(not isinstance(value, (dict, list)) for value in json.loads(text).values()), text


def check_rows(rows):
    names = list(rows[0])
    standard = [name for name in names if not name.startswith("x_")]
    assert set(standard) == set(MANDATORY) | set(OTHERS), set(standard) ^ (set(MANDATORY) | set(OTHERS))
    assert standard == names[:len(standard)] == sorted(standard), "columns of FOCUS come first, in alphabetical order"
    for row in rows:
        for name, (kind, may_be_null) in {**MANDATORY, **OTHERS}.items():
            check_cell(name, kind, may_be_null, row[name])
        amount, hours = decimal.Decimal(row["BilledCost"]), decimal.Decimal(row["PricingQuantity"])
        assert amount == amount.quantize(decimal.Decimal("0.01")) and all(row[name] == row["BilledCost"] for name in COSTS), row
        for price in (row["ListUnitPrice"], row["ContractedUnitPrice"]):
            assert abs(decimal.Decimal(price) * hours - amount) < decimal.Decimal("1e-6"), row
        assert abs(decimal.Decimal(row["ConsumedQuantity"]) * decimal.Decimal(row["ListUnitPrice"]) - amount) < decimal.Decimal("0.02"), row
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"], row
        assert row["BillingPeriodStart"].endswith("-01T00:00:00Z") and row["BillingPeriodEnd"].endswith("-01T00:00:00Z"), row
        assert (row["SubAccountId"] == "") == (row["SubAccountName"] == "") == (row["SubAccountType"] == ""), row
        assert row["ProviderName"] == row["BillingAccountId"] == 'gpu cluster, "one"' and row["x_Part"] in PARTS, row


def check_sums(history, unit, *arguments):
    """The charges of each key, GPU and part are those of the bill."""
    expected, charged = {}, {}
    for row in bill(history, "--by", unit, *arguments):
        for part in PARTS:
            if row["currency"] and round(row[part + "_cost"] * 100):
                expected[row["name"] if row["name"] not in (None, "(no kernel)") else "", row["model"], part] = round(row[part + "_cost"] * 100)
    rows = focus(history, "--by", unit, *arguments)
    check_rows(rows)
    for row in rows:
        cents = round(decimal.Decimal(row["BilledCost"]) * 100)
        if cents:
            key = row["SubAccountId"], row["x_GpuModel"], row["x_Part"]
            charged[key] = charged.get(key, 0) + cents
        assert row["SubAccountType"] in ("", unit), row
    assert charged == expected, (unit, charged, expected)
    return rows


two_gpus, one = os.path.join(work.name, "two.db"), os.path.join(work.name, "one.db")
subprocess.run([TWO_GPUS, two_gpus], check=True)
subprocess.run([CLI_HISTORY, one], check=True)
put_settings("prices:\n  H100: 2000.37 EUR\n  A100: 900000.123456 EUR\n  T4: 400000 USD\n  V100: 700000.5 EUR\ncolumns:\n  top: +launches\n")
for history in (two_gpus, one):
    for unit in ("user", "job", "account", "run", "kernel", "layer"):
        print(os.path.basename(history), unit, len(check_sums(history, unit)), "charges")

# The charge period is that of the question, else of the held time, in UTC.
spans = json.loads(occq("sql", "-d", one, "--json", "SELECT min(start_ns) low, max(start_ns + duration_ns) high FROM launch"))["rows"][0]
first = datetime.datetime.fromtimestamp(spans["low"] // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
end = datetime.datetime.fromtimestamp(-(-spans["high"] // 10**9), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
assert {(row["ChargePeriodStart"], row["ChargePeriodEnd"]) for row in focus(one)} == {(first, end)}, (first, end, focus(one)[0])
since, until = spans["low"] // 10**9 - 40 * 86400, spans["high"] // 10**9 + 86400
rows = focus(one, "--since", f"@{since}", "--until", f"@{until}")
assert all(datetime.datetime.strptime(row["ChargePeriodStart"] + "+0000", "%Y-%m-%dT%H:%M:%SZ%z").timestamp() == since for row in rows)
check_rows(rows)

# Rows without a price are left out, and a note tells so; without times there are no charges.
put_settings("prices:\n  B200: 2 EUR\n")
answer = subprocess.run([OCCQ, "top", "--cost", "-d", one, "--csv", "--focus", "x"], env=environment, capture_output=True, text=True)
assert answer.returncode == 0 and len(answer.stdout.splitlines()) == 1 and "without a price" in answer.stderr, answer
occq("import", "-d", os.path.join(work.name, "imported.db"), os.path.join(RECORDINGS, "v100_step.json.gz"))
for bad in (["--focus", "x"], ["--focus", "x", "--json"], ["--focus", "x", "--csv", "-o", "name"], ["--focus", "", "--csv"]):
    assert "--focus" in occq("top", "--cost", "-d", one, *bad, status=2), bad
