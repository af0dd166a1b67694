/* stageout: files of jobs that have ended, on their way out (the mover is local/stage).
 *
 * That they are to be taken is durable with the job's end (local/store/leaving.h), and goes on
 * after a restart. The job has ended: it is charged, its nodes are free; its reason is StageOut
 * until the last file is gone, then none, or StageOutFailed. Its files are not purged before.
 *
 * What could not be taken is remembered as long as the job is (JOBPURGETIME), and is tried once more when
 * its owner, an operator or its metascheduler asks for it (RESTAGE). */
#ifndef NUI_LOCAL_SVC_STAGEOUT_H
#define NUI_LOCAL_SVC_STAGEOUT_H

#include "local/svc/svc_i.h"

int stageout_recover (struct svc *svc, struct err *err);
/* What is on its way out of a job that has ended, or could not go: transfers and stage_out. */
void stageout_info (const struct svc *svc, const struct store_job *rec, struct arena *arena,
                    Nui__Local__V1__JobInfo *out);
/* RESTAGE of the Local service. */
void stageout_restage (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* The directory of a job's last run, open; -1: ERR_NOT_FOUND, ERR_IO. */
int files_work_open (struct svc *svc, const struct store_job *rec, struct err *err);

/* --- fetch.c: FILES and FETCH of the Local service --- */

void fetch_files (void *self, struct rpccall *call, const ProtobufCMessage *request);
void fetch_serve (void *self, struct rpccall *call, const ProtobufCMessage *request);
void fetch_draining (struct svc *svc);

/* --- inputs.c: PUT of the Local service --- */

void inputs_put (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- output.c: OUTPUT of the Local service --- */

void output_serve (void *self, struct rpccall *call, const ProtobufCMessage *request);
void output_draining (struct svc *svc);

#endif
