/* replay: runs LLVMFuzzerTestOneInput over saved inputs, in builds without libFuzzer.
 *
 * Arguments are files or folders (every regular file in it; one level). An input that crashes is
 * named on standard error before it runs. Exit 1 when there was nothing to run. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static unsigned run_file (const char *path)
{
    FILE *f = fopen (path, "rb");
    struct stat st;
    uint8_t *data;

    if (!f || fstat (fileno (f), &st) < 0 || !S_ISREG (st.st_mode)) {
        fprintf (stderr, "replay: %s: not a readable file\n", path);
        exit (1);
    }
    /* Exactly as large as the input, so that a read past its end is seen. */
    data = malloc (st.st_size > 0 ? (size_t)st.st_size : 1);
    if (!data || fread (data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        fprintf (stderr, "replay: %s: cannot be read\n", path);
        exit (1);
    }
    fclose (f);
    fprintf (stderr, "replay: %s\n", path);
    (void)LLVMFuzzerTestOneInput (data, (size_t)st.st_size);
    free (data);
    return 1;
}

static unsigned run_folder (const char *path)
{
    struct dirent **entries;
    int n = scandir (path, &entries, NULL, alphasort);
    unsigned count = 0;

    for (int i = 0; i < n; i++) {
        char name[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf (name, sizeof (name), "%s/%s", path, entries[i]->d_name);
            count += run_file (name);
        }
        free (entries[i]);
    }
    if (n >= 0)
        free (entries);
    return count;
}

int main (int argc, char **argv)
{
    unsigned count = 0;
    struct stat st;

    for (int i = 1; i < argc; i++) {
        if (stat (argv[i], &st) == 0 && S_ISDIR (st.st_mode))
            count += run_folder (argv[i]);
        else
            count += run_file (argv[i]);
    }
    fprintf (stderr, "replay: %u inputs\n", count);
    return count > 0 ? 0 : 1;
}
