# A task that fails is restarted; the third error in a row isolates it, and a spare takes over.
DEFINE 0 = MANAGER
DEFINE 1-2 = BACKUP
TASK 1 = "camera" IS NODE 1, TASKID 0
TASK 2 = "spare" IS NODE 2, TASKID 0
ALPHACOUNT T1 IS THRESHOLD = 3.0, FACTOR = 0.5 EVERY 1 S END

IF [ TRANSIENT T{camera} ] THEN
    RESTART T{camera}
ELIF [ FAULTY T{camera} ] THEN
    ISOLATE T{camera} AND WARN T{spare}
    START T{spare}
    LOG "camera isolated after errors" ERRN(T1)
FI
