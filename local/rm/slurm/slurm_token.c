/* slurm_token: a token for slurmrestd, from a key or from a file. slurm_rest.c asks for one with each request. One that
 * is made here is renewed at half its life; the file is read again whenever it changed. An expired one is never sent:
 * slurmrestd's words for that say nothing of why. */
#include "local/rm/slurm/slurm_token.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "local/rm/slurm/slurm_jwt.h"
#include "proto/base/text.h"

enum { TOKEN_FILE_MAX = 8192 };

struct slurm_token {
    char *file; /* NULL: signed here */
    char *user;
    unsigned char key[SLURM_JWT_KEY_MAX];
    size_t key_len;
    duration_us life;
    char text[TOKEN_FILE_MAX];
    time_us ends;            /* 0: there is none */
    struct timespec changed; /* of the file as it was read */
    char doubt[400];
};

static ssize_t token_file_read (const char *path, void *out, size_t cap)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, out, cap);
    int saved = errno;
    if (fd >= 0)
        close (fd);
    errno = saved;
    return n;
}

/* The middle part, base64url without its padding, as JSON. */
static json_t *token_claims (const char *text)
{
    unsigned char raw[TOKEN_FILE_MAX];
    char part[TOKEN_FILE_MAX];
    const char *from = strchr (text, '.');
    size_t len = from ? strcspn (from + 1, ".") : 0;
    if (len == 0 || from[1 + len] != '.' || len + 4 > sizeof part)
        return NULL;
    memcpy (part, from + 1, len);
    for (size_t i = 0; i < len; i++)
        part[i] = part[i] == '-' ? '+' : part[i] == '_' ? '/' : part[i];
    size_t padded = len;
    while (padded % 4)
        part[padded++] = '=';
    int n = EVP_DecodeBlock (raw, (unsigned char *)part, (int)padded);
    return n > 0 ? json_loadb ((char *)raw, (size_t)n - (padded - len), 0, NULL) : NULL;
}

/* What scontrol token prints, "SLURM_JWT=…", or the token alone. */
static int token_take (struct slurm_token *token, char *text, struct err *err)
{
    static const char prefix[] = "SLURM_JWT=";
    char *from = strncmp (text, prefix, sizeof prefix - 1) == 0 ? text + sizeof prefix - 1 : text;
    size_t len = strlen (from);
    while (len > 0 && isspace ((unsigned char)from[len - 1]))
        from[--len] = 0;
    json_t *claims = strpbrk (from, " \t\r\n") ? NULL : token_claims (from);
    const char *user = json_string_value (json_object_get (claims, "sun"));
    json_t *ends = json_object_get (claims, "exp");
    int rc = 0;
    if (!claims || !json_is_integer (ends))
        rc = err_set (err, ERR_DENIED,
                      "%s holds no token: wanted what 'scontrol token' prints, which says when it "
                      "expires",
                      token->file);
    else if (user && strcmp (user, token->user) != 0)
        rc = err_set (err, ERR_DENIED, "the token in %s is for %.60s, and RMCFG USER is %s",
                      token->file, user, token->user);
    if (rc == 0) {
        text_printf (token->text, sizeof token->text, "%s", from);
        int64_t s = json_integer_value (ends);
        token->ends = s < 0 ? 1 : s > INT32_MAX * INT64_C (64) ? TIME_US_MAX : s * US_PER_S;
    }
    json_decref (claims);
    return rc;
}

static int token_read (struct slurm_token *token, struct err *err)
{
    char text[TOKEN_FILE_MAX];
    struct stat st;
    ssize_t n = token_file_read (token->file, text, sizeof text - 1);
    if (n < 0 || stat (token->file, &st) != 0)
        return err_set (err, ERR_IO, "Slurm's token %s: %s", token->file, strerror (errno));
    text[n] = 0;
    token->changed = st.st_mtim;
    int rc = token_take (token, text, err);
    OPENSSL_cleanse (text, sizeof text);
    return rc;
}

static bool token_file_changed (const struct slurm_token *token)
{
    struct stat st;
    return stat (token->file, &st) != 0 || st.st_mtim.tv_sec != token->changed.tv_sec ||
           st.st_mtim.tv_nsec != token->changed.tv_nsec;
}

static const char *token_of_file (struct slurm_token *token, time_us now, struct err *err)
{
    struct err local = {0};
    int rc = token->ends == 0 || token_file_changed (token) ? token_read (token, &local) : 0;
    /* One that is being renewed may be away for a moment, or written by half: the last one still holds. */
    if (rc != 0 && now >= token->ends) {
        err_set (err, local.code, "%s", local.text);
        return NULL;
    }
    if (now < token->ends)
        return token->text;
    char when[40];
    time_t s = (time_t)(token->ends / US_PER_S);
    struct tm tm;
    strftime (when, sizeof when, "%Y-%m-%d %H:%M:%S %Z", localtime_r (&s, &tm));
    err_set (err, ERR_DENIED, "the token in %s expired at %s: renew it", token->file, when);
    return NULL;
}

static const char *token_signed (struct slurm_token *token, time_us now, struct err *err)
{
    /* Renewed at half its life; also when the clock was set back. */
    if (now < token->ends - token->life / 2 && now > token->ends - 2 * token->life)
        return token->text;
    if (slurm_jwt_make (token->key, token->key_len, token->user, now, token->life, token->text,
                        err) != 0)
        return NULL;
    token->ends = now + token->life;
    return token->text;
}

const char *slurm_token_get (struct slurm_token *token, time_us now, struct err *err)
{
    return token->file ? token_of_file (token, now, err) : token_signed (token, now, err);
}

const char *slurm_token_doubt (const struct slurm_token *token)
{
    return token->doubt;
}

static int key_read (struct slurm_token *token, const char *path, struct err *err)
{
    ssize_t n = token_file_read (path, token->key, sizeof token->key);
    if (n <= 0)
        return err_set (err, ERR_IO, "Slurm's JWT key %s: %s", path,
                        n == 0 ? "it is empty" : strerror (errno));
    token->key_len = (size_t)n;
    return 0;
}

struct slurm_token *slurm_token_create (const char *key_file, const char *token_file,
                                        const char *user, duration_us life, struct err *err)
{
    struct slurm_token *token = calloc (1, sizeof *token);
    int rc = token ? 0 : err_set (err, ERR_NOMEM, "slurmrestd: no memory");
    if (rc != 0)
        return NULL;
    token->file = token_file ? strdup (token_file) : NULL;
    token->user = strdup (user);
    token->life = life;
    if (!token->user || (token_file && !token->file))
        rc = err_set (err, ERR_NOMEM, "slurmrestd: no memory");
    else if (token_file)
        rc = token_read (token, err);
    else
        rc = key_read (token, key_file, err);
    text_printf (token->doubt, sizeof token->doubt, "%s%.300s%s",
                 token_file ? "was that in " : "is KEY the cluster's jwt key?",
                 token_file ? token_file : "", token_file ? " made by this cluster?" : "");
    if (rc == 0)
        return token;
    slurm_token_destroy (token);
    return NULL;
}

void slurm_token_destroy (struct slurm_token *token)
{
    if (!token)
        return;
    OPENSSL_cleanse (token->key, sizeof token->key);
    OPENSSL_cleanse (token->text, sizeof token->text);
    free (token->file);
    free (token->user);
    free (token);
}
