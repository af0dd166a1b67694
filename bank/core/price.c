#include "bank/core/price.h"

#include <inttypes.h>
#include <stdio.h>

int price_compute (int64_t procs, duration_us time, int64_t ppm, enum price_rounding rounding,
                   credit_micro *amount_out, struct err *err)
{
    if (procs < 1 || procs > PRICE_PROCS_MAX)
        return err_set (err, ERR_INVALID,
                        "price: %" PRId64 " processors, 1 to %" PRId64 " can be priced", procs,
                        PRICE_PROCS_MAX);
    if (time < 0 || time > PRICE_TIME_US_MAX)
        return err_set (err, ERR_INVALID,
                        "price: a time of %" PRId64 " s, 0 to %" PRId64 " can be priced",
                        time / US_PER_S, PRICE_TIME_US_MAX / US_PER_S);
    if (ppm < 0 || ppm > PRICE_PPM_MAX)
        return err_set (err, ERR_INVALID,
                        "price: a multiplier of %" PRId64 " ppm, 0 to %" PRId64 " are allowed", ppm,
                        PRICE_PPM_MAX);
    __int128 product = (__int128)procs * time * ppm;
    __int128 amount = product / 1000000;
    if (rounding == PRICE_HOLD && product % 1000000 != 0)
        amount++;
    if (amount > PRICE_AMOUNT_MAX)
        return err_set (err, ERR_LIMIT,
                        "price: %" PRId64 " processors for %" PRId64
                        " s cost more than the ledger can hold",
                        procs, time / US_PER_S);
    *amount_out = (credit_micro)amount;
    return 0;
}

char *price_formula (int64_t procs, duration_us time, int64_t ppm, credit_micro amount,
                     char buf[PRICE_FORMULA_MAX])
{
    char seconds[QUANTITY_TEXT_MAX], multiplier[QUANTITY_TEXT_MAX], credits[QUANTITY_TEXT_MAX];
    /* Seconds and ppm have six decimals, as credits do. */
    snprintf (buf, PRICE_FORMULA_MAX, "%" PRId64 " procs * %s s * %s = %s credits", procs,
              credit_format (time, seconds), credit_format (ppm, multiplier),
              credit_format (amount, credits));
    return buf;
}
