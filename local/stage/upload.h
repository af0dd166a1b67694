/* upload: what its two files share. */
#ifndef NUI_LOCAL_STAGE_UPLOAD_H
#define NUI_LOCAL_STAGE_UPLOAD_H

#include "local/stage/stage_i.h"

/* The request sends bytes [begin, end) of the file. */
void upload_body (struct run *run, int64_t begin, int64_t end);
/* It was sent: that is remembered, and the run ends. */
void upload_sent (struct run *run);

#endif
