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

import priced

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
environment = priced.environment(work.name, "America/New_York")


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
        assert amount == amount.quantize(decimal.Decimal("0.000001")) and all(row[name] == row["BilledCost"] for name in COSTS), row
        for price in (row["ListUnitPrice"], row["ContractedUnitPrice"]):
            assert abs(decimal.Decimal(price) * hours - amount) < decimal.Decimal("1e-6"), row
        price = decimal.Decimal(row["ListUnitPrice"]) # hours have nine digits after the point
        assert abs(decimal.Decimal(row["ConsumedQuantity"]) * price - amount) < decimal.Decimal("0.000002") + price / 10**9, row
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"], row
        assert row["BillingPeriodStart"].endswith("-01T00:00:00Z") and row["BillingPeriodEnd"].endswith("-01T00:00:00Z"), row
        assert (row["SubAccountId"] == "") == (row["SubAccountName"] == "") == (row["SubAccountType"] == ""), row
        assert row["ProviderName"] == row["BillingAccountId"] == 'gpu cluster, "one"' and row["x_Part"] in PARTS, row


def check_sums(history, unit, *arguments):
    """The charges of each key and GPU are the bill's, which has cents; returns the charges and their sum by currency."""
    expected, charged, sums, billed = {}, {}, {}, {}
    for row in bill(history, "--by", unit, *arguments):
        if row["currency"]:
            key = row["name"] if row["name"] not in (None, "(no kernel)") else "", row["model"]
            expected[key] = decimal.Decimal(str(row["cost"]))
            billed[row["currency"]] = billed.get(row["currency"], 0) + decimal.Decimal(str(row["cost"]))
    rows = focus(history, "--by", unit, *arguments)
    check_rows(rows)
    for row in rows:
        key, amount = (row["SubAccountId"], row["x_GpuModel"]), decimal.Decimal(row["BilledCost"])
        charged[key] = charged.get(key, 0) + amount
        sums[row["BillingCurrency"]] = sums.get(row["BillingCurrency"], 0) + amount
        assert row["SubAccountType"] in ("", unit), row
    assert set(charged) == set(expected) and all(abs(charged[key] - expected[key]) <= decimal.Decimal("0.01") for key in charged), (unit, charged, expected)
    assert all(abs(sums[currency] - billed[currency]) <= decimal.Decimal("0.005") for currency in billed), (unit, sums, billed)
    return rows, sums


two_gpus, one = os.path.join(work.name, "two.db"), os.path.join(work.name, "one.db")
subprocess.run([TWO_GPUS, two_gpus], check=True)
subprocess.run([CLI_HISTORY, one], check=True)
priced.put_settings(work.name, "prices:\n  H100: 2000.37 EUR\n  A100: 900000.123456 EUR\n  T4: 400000 USD\n  V100: 700000.5 EUR\ncolumns:\n  top: +launches\n")
for history in (two_gpus, one):
    answers = {unit: check_sums(history, unit) for unit in ("user", "job", "account", "run", "kernel", "layer")}
    print(os.path.basename(history), {unit: len(rows) for unit, (rows, _) in answers.items()}, "charges")
    assert all(sums == answers["user"][1] for _, sums in answers.values()), answers

# Charges of parts of the time add up to those of the whole: 150 bills of 60 seconds, each rounded to millionths.
priced.put_settings(work.name, "prices:\n  H100: 2.50 EUR\n")
whole = focus(two_gpus, "--by", "run")
of_run, begin, end = {}, *(int(datetime.datetime.strptime(whole[0][name] + "+0000", "%Y-%m-%dT%H:%M:%SZ%z").timestamp())
                           for name in ("ChargePeriodStart", "ChargePeriodEnd"))
for since in range(begin, end, 60):
    for row in focus(two_gpus, "--by", "run", "--since", f"@{since}", "--until", f"@{since + 60}"):
        of_run[row["SubAccountId"]] = of_run.get(row["SubAccountId"], 0) + decimal.Decimal(row["BilledCost"])
for row in whole:
    of_run[row["SubAccountId"]] -= decimal.Decimal(row["BilledCost"])
assert len(of_run) == 2 and all(abs(rest) <= decimal.Decimal("0.000001") * (end - begin) / 60 for rest in of_run.values()), of_run
priced.put_settings(work.name, "prices:\n  H100: 2000.37 EUR\n  A100: 900000.123456 EUR\n  T4: 400000 USD\n  V100: 700000.5 EUR\n")

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
priced.put_settings(work.name, "prices:\n  B200: 2 EUR\n")
answer = subprocess.run([OCCQ, "top", "--cost", "-d", one, "--csv", "--focus", "x"], env=environment, capture_output=True, text=True)
assert answer.returncode == 0 and len(answer.stdout.splitlines()) == 1 and "without a price" in answer.stderr, answer
occq("import", "-d", os.path.join(work.name, "imported.db"), os.path.join(RECORDINGS, "v100_step.json.gz"))
for bad in (["--focus", "x"], ["--focus", "x", "--json"], ["--focus", "x", "--csv", "-o", "name"], ["--focus", "", "--csv"]):
    assert "--focus" in occq("top", "--cost", "-d", one, *bad, status=2), bad
