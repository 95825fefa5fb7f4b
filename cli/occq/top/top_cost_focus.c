/* See top_cost_focus.h. Columns and values: FOCUS 1.2, https://focus.finops.org/focus-specification/v1-2. */
#include "top_cost_focus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/table.h"
#include "support/cleanup.h"

enum { TIME_BYTES = 24, NUMBER_BYTES = 48, MILLION = 1000000 };

/* A charge; "" and NULL: null. FOCUS has its own formats of times and numbers, so all values are texts. */
struct charge {
    const char *provider, *currency, *account, *account_type, *sku, *model, *part, *is_estimate,
        *is_simulated;
    const char *category, *frequency, *unit, *pricing, *service, *service_category, *subcategory, *meter;
    char description[160], details[24], price_id[160];
    char period[2][TIME_BYTES], billing[2][TIME_BYTES]; /* start, end */
    char cost[NUMBER_BYTES], price[NUMBER_BYTES], hours[NUMBER_BYTES], priced_hours[NUMBER_BYTES];
    char joules[NUMBER_BYTES];
    char no_class[1];
};

#define FIELD(name, member, help) CLI_FIELD(name, name, CLI_PLAIN, CLI_LEFT, struct charge, member, help)

static const struct cli_column columns[] = {
    FIELD("BilledCost", cost, "amount of the part, with six digits after the point"),
    FIELD("BillingAccountId", provider, "NAME of --focus"),
    FIELD("BillingAccountName", provider, "the same"),
    FIELD("BillingCurrency", currency, "currency of the price"),
    FIELD("BillingPeriodEnd", billing[1], "end of the month of the last charged moment, exclusive"),
    FIELD("BillingPeriodStart", billing[0], "start of the month of the first charged moment"),
    FIELD("ChargeCategory", category, "Usage"),
    FIELD("ChargeClass", no_class, "null: no correction"),
    FIELD("ChargeDescription", description, "the part and the GPU in words"),
    FIELD("ChargeFrequency", frequency, "Usage-Based"),
    FIELD("ChargePeriodEnd", period[1], "--until, or the end of the held time"),
    FIELD("ChargePeriodStart", period[0], "--since, or the start of the held time"),
    FIELD("ConsumedQuantity", hours, "held time"),
    FIELD("ConsumedUnit", unit, "GPU-Hours"),
    FIELD("ContractedCost", cost, "as BilledCost: prices have no discounts"),
    FIELD("ContractedUnitPrice", price, "price of a GPU-hour"),
    FIELD("EffectiveCost", cost, "as BilledCost"),
    FIELD("InvoiceIssuerName", provider, "NAME of --focus"),
    FIELD("ListCost", cost, "as BilledCost"),
    FIELD("ListUnitPrice", price, "price of a GPU-hour"),
    FIELD("PricingCategory", pricing, "Standard"),
    FIELD("PricingQuantity", priced_hours, "BilledCost / ListUnitPrice"),
    FIELD("PricingUnit", unit, "GPU-Hours"),
    FIELD("ProviderName", provider, "NAME of --focus"),
    FIELD("PublisherName", provider, "the same"),
    FIELD("ServiceCategory", service_category, "Compute"),
    FIELD("ServiceName", service, "GPU time"),
    FIELD("ServiceSubcategory", subcategory, "Other (Compute)"),
    FIELD("SkuId", sku, "the price's text in occq.yaml"),
    FIELD("SkuMeter", meter, "Held GPU time"),
    FIELD("SkuPriceDetails", details, "one GPU"),
    FIELD("SkuPriceId", price_id, "the price in words"),
    FIELD("SubAccountId", account, "the user, job ... of the row"),
    FIELD("SubAccountName", account, "the same"),
    FIELD("SubAccountType", account_type, "the unit of --by"),
    FIELD("x_EnergyJoules", joules, "energy of the part; null: not measured"),
    FIELD("x_GpuModel", model, "name of the GPU"),
    FIELD("x_IsEstimate", is_estimate, "whether the division into parts is estimated"),
    FIELD("x_IsSimulated", is_simulated, "whether a device is a simulated one"),
    FIELD("x_Part", part, "part of the held time"),
    CLI_COLUMN_END,
};

#define PART_WORD(name, word, text) word,
static const char *const part_words[] = {OCC_BILL_PARTS(PART_WORD)};

/* ---- formats ---- */

/* Prints seconds since 1970 in the format of FOCUS. False: the year has not four digits. */
static bool print_time(time_t seconds, char text[TIME_BYTES])
{
    struct tm tm;
    return gmtime_r(&seconds, &tm) && tm.tm_year < 8100 &&
           strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0;
}

/* Returns the first second of the month `months` after that of `seconds`. */
static time_t month_of(time_t seconds, int months)
{
    struct tm tm = {0};
    if (!gmtime_r(&seconds, &tm))
        return seconds;
    struct tm first = {.tm_year = tm.tm_year, .tm_mon = tm.tm_mon + months, .tm_mday = 1};
    return timegm(&first);
}

static bool print_periods(const struct top_focus *focus, const struct occ_bill *bill, struct charge *charge)
{
    const int64_t second_ns = INT64_C(1000000000);
    int64_t first_ns = focus->since_ns > 0 ? focus->since_ns : bill->first_ns;
    int64_t last_ns = focus->until_ns > 0 ? focus->until_ns : bill->last_ns;
    time_t first = (time_t)(first_ns / second_ns),
           end = (time_t)(last_ns / second_ns + (last_ns % second_ns > 0));
    return first_ns > 0 && last_ns > first_ns && print_time(first, charge->period[0]) &&
           print_time(end, charge->period[1]) && print_time(month_of(first, 0), charge->billing[0]) &&
           print_time(month_of(end - 1, 1), charge->billing[1]);
}

/* Prints without exponent and without zeros at the end. */
static void print_decimal(double number, int digits, char text[NUMBER_BYTES])
{
    (void)snprintf(text, NUMBER_BYTES, "%.*f", digits, number);
    size_t n = strlen(text);
    while (n > 1 && text[n - 1] == '0')
        text[--n] = 0;
    if (text[n - 1] == '.')
        text[n - 1] = 0;
}

/* ---- charges ---- */

static struct charge charge_of(const struct top_focus *focus, const struct charge *periods,
                               const struct occ_bill_row *row, size_t part)
{
    const struct occ_price *price = row->price;
    int64_t amount = row->part_millionths[part];
    double unit_price = (double)price->millionths / MILLION;
    struct charge charge = *periods;
    charge.provider = focus->provider;
    charge.currency = price->currency;
    charge.account = row->key;
    charge.account_type = row->key ? focus->by : NULL;
    charge.sku = price->model;
    charge.model = row->model;
    charge.part = part_words[part];
    charge.is_estimate = row->is_estimate ? "true" : "false";
    charge.is_simulated = row->simulated ? "true" : "false";
    charge.category = "Usage";
    charge.frequency = "Usage-Based";
    charge.unit = "GPU-Hours";
    charge.pricing = "Standard";
    charge.service = "GPU time";
    charge.service_category = "Compute";
    charge.subcategory = "Other (Compute)";
    charge.meter = "Held GPU time";
    (void)snprintf(charge.details, sizeof charge.details, "{\"GpuCount\":1}");
    (void)snprintf(charge.description, sizeof charge.description, "Held time of %.80s: %s", row->model,
                   charge.part);
    (void)snprintf(charge.cost, sizeof charge.cost, "%" PRId64 ".%06d", amount / MILLION,
                   (int)(amount % MILLION));
    print_decimal(unit_price, 6, charge.price);
    print_decimal(row->part_s[part] / 3600, 9, charge.hours);
    print_decimal((double)amount / MILLION / unit_price, 15, charge.priced_hours);
    if (row->metered_s > 0)
        print_decimal((double)row->part_mj[part] / 1e3, 3, charge.joules);
    (void)snprintf(charge.price_id, sizeof charge.price_id, "%s %s %s", price->model, charge.price,
                   price->currency);
    return charge;
}

static int add_row(const struct top_focus *focus, const struct charge *periods,
                   const struct occ_bill_row *row, struct cli_table *table, struct occ_error *err)
{
    int status = 0;
    for (size_t part = 0; part < OCC_BILL_PART_COUNT && status == 0; part++) {
        if (!(row->part_s[part] > 0) && row->part_millionths[part] == 0)
            continue;
        struct charge charge = charge_of(focus, periods, row, part);
        status = cli_table_add(table, &charge, err);
    }
    return status;
}

int top_focus_print(const struct cli_command *command, const struct top_focus *focus,
                    const struct occ_bill *bill, struct occ_error *err)
{
    const struct cli_output csv = {.csv = true};
    struct cli_selection selection;
    struct charge periods = {.provider = focus->provider};
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    size_t without_price = 0;
    if (!print_periods(focus, bill, &periods))
        return occ_fail(err, OCC_E_INVALID, "--focus needs times: no run has times that count from 1970");
    int status = cli_output_choose(&csv, columns, &selection, err);
    if (status == 0)
        status = cli_table_new(cli_out(), "charges", &selection, &table, err);
    for (size_t i = 0; i < bill->n && status == 0; i++) {
        without_price += !bill->rows[i].price;
        status = bill->rows[i].price ? add_row(focus, &periods, &bill->rows[i], table, err) : 0;
    }
    if (status == 0)
        status = cli_table_finish(table, err);
    if (status == 0 && without_price > 0)
        cli_note(command, "%zu row%s of GPUs without a price %s left out", without_price,
                 without_price == 1 ? "" : "s", without_price == 1 ? "is" : "are");
    return status;
}
