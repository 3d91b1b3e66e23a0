# When a node is lost, a spare of what ran there starts; when the node is back, the spare stops.
DEFINE 0 = MANAGER
DEFINE 1-2 = BACKUP
DEFAULT = RESTART
TASK 1 = "lidar" IS NODE 1, TASKID 0
TASK 2 = "lidar_spare" IS NODE 2, TASKID 0

IF [ DOWN N1 AND NOT RUNNING T{lidar_spare} ] THEN
    START T{lidar_spare}
    LOG "running on the spare lidar"
ELIF [ REINTEGRATED N1 AND RUNNING T{lidar} AND RUNNING T{lidar_spare} ] THEN
    STOP T{lidar_spare}
FI
