/* Any text as a URL, a path and a checksum; of a URL that is taken no secret is shown, and it is
 * read the same again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job/stagespec.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = calloc (size + 1, 1), shown[STAGE_URL_MAX];
    struct stage_url url, again;
    uint8_t sum[STAGE_SHA256_LEN];
    struct err err = {0};
    assert (text);
    if (size)
        memcpy (text, data, size);
    stage_url_show (text, shown, sizeof shown);
    assert (!strchr (shown, '?') && !strchr (shown, '#'));
    if (stage_url_parse (text, &url, &err) != 0) {
        assert (err.code < 0 && err.text[0]);
    } else {
        assert (*url.path == '/' && url.path >= text && url.path < text + size);
        if (!*url.user) /* else the shown one has lost it, which is no other URL's */
            assert (stage_url_parse (shown, &again, NULL) == 0 &&
                    strcmp (url.host, again.host) == 0 && url.port == again.port &&
                    url.scheme == again.scheme);
    }
    if (stage_path_check (text, NULL) == 0)
        assert (*text != '/' && !strstr (text, "/../") && strncmp (text, "../", 3) != 0);
    stage_checksum_parse (text, sum, NULL);
    free (text);
    return 0;
}
