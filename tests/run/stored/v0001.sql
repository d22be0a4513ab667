BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE attempts (
	id INTEGER NOT NULL, 
	job_id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	resources JSON NOT NULL, 
	started FLOAT NOT NULL, 
	heartbeat FLOAT NOT NULL, 
	lease_until FLOAT, 
	ended FLOAT, 
	outcome VARCHAR(20), 
	reason TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(job_id) REFERENCES jobs (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	UNIQUE (job_id, number)
);
INSERT INTO "attempts" VALUES(1,1,1,1,'host/1/1','["local"]',0.0,0.0,NULL,1.0,'done',NULL);
INSERT INTO "attempts" VALUES(2,2,1,1,'host/1/1','["local"]',1.0,1.0,NULL,2.0,'done',NULL);
INSERT INTO "attempts" VALUES(3,3,1,1,'host/1/1','["local"]',2.0,2.0,NULL,3.0,'done',NULL);
INSERT INTO "attempts" VALUES(4,4,1,1,'host/1/1','["local"]',3.0,3.0,NULL,4.0,'done',NULL);
INSERT INTO "attempts" VALUES(5,5,1,1,'host/1/1','["local"]',4.0,4.0,NULL,5.0,'done',NULL);
INSERT INTO "attempts" VALUES(6,6,1,1,'host/1/1','["local"]',5.0,5.0,NULL,6.0,'done',NULL);
INSERT INTO "attempts" VALUES(7,7,1,1,'host/1/1','["local"]',6.0,6.0,NULL,7.0,'done',NULL);
INSERT INTO "attempts" VALUES(8,8,1,1,'host/1/1','["local"]',7.0,7.0,NULL,8.0,'done',NULL);
INSERT INTO "attempts" VALUES(9,9,1,1,'host/1/1','["local"]',8.0,8.0,NULL,9.0,'done',NULL);
INSERT INTO "attempts" VALUES(10,10,1,1,'host/1/1','["local"]',10.0,10.0,NULL,11.0,'done',NULL);
INSERT INTO "attempts" VALUES(11,11,1,1,'host/1/1','["local"]',11.1,11.1,NULL,12.1,'done',NULL);
INSERT INTO "attempts" VALUES(12,12,1,1,'host/1/1','["local"]',12.2,12.2,NULL,13.2,'done',NULL);
INSERT INTO "attempts" VALUES(13,13,1,1,'host/1/1','["local"]',1.32999999999999989346e+01,1.32999999999999989346e+01,NULL,1.42999999999999989337e+01,'done',NULL);
INSERT INTO "attempts" VALUES(14,14,1,1,'host/1/1','["local"]',1.52999999999999989341e+01,1.52999999999999989341e+01,NULL,1.62999999999999971582e+01,'done',NULL);
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	made FLOAT NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	seconds JSON NOT NULL, 
	warnings JSON NOT NULL, 
	free JSON, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	UNIQUE (study_id, number)
);
INSERT INTO "decisions" VALUES(1,1,0,0.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(2,1,1,1.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(3,1,2,2.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(4,1,3,3.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(5,1,4,4.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(6,1,5,5.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(7,1,6,6.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(8,1,7,7.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(9,1,8,8.0,'initial','{"total": 0.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(10,1,9,10.0,'full','{"model": 0.0, "incumbent": 0.0, "acquisition": 0.0, "maximise": 1.0, "total": 1.0}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(11,1,10,11.1,'partial','{"model": 0.0, "incumbent": 0.0, "acquisition": 0.0, "maximise": 0.09999999999999964, "total": 0.09999999999999964}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(12,1,11,12.2,'partial','{"model": 0.0, "incumbent": 0.0, "acquisition": 0.0, "maximise": 0.09999999999999964, "total": 0.09999999999999964}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(13,1,12,1.32999999999999989346e+01,'partial','{"model": 0.0, "incumbent": 0.0, "acquisition": 0.0, "maximise": 0.09999999999999964, "total": 0.09999999999999964}','[]','{"local": 1}');
INSERT INTO "decisions" VALUES(14,1,13,1.52999999999999989341e+01,'full','{"model": 0.0, "incumbent": 0.0, "acquisition": 0.0, "maximise": 1.0, "total": 1.0}','[]','{"local": 1}');
CREATE TABLE events (
	study_id INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	time FLOAT NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	job INTEGER, 
	attempt INTEGER, 
	detail JSON, 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	UNIQUE (study_id, sequence)
);
INSERT INTO "events" VALUES(1,1,0.0,'asked',0,1,'["local"]');
INSERT INTO "events" VALUES(1,2,1.0,'told',0,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,3,1.0,'asked',1,1,'["local"]');
INSERT INTO "events" VALUES(1,4,2.0,'told',1,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,5,2.0,'asked',2,1,'["local"]');
INSERT INTO "events" VALUES(1,6,3.0,'told',2,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,7,3.0,'asked',3,1,'["local"]');
INSERT INTO "events" VALUES(1,8,4.0,'told',3,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,9,4.0,'asked',4,1,'["local"]');
INSERT INTO "events" VALUES(1,10,5.0,'told',4,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,11,5.0,'asked',5,1,'["local"]');
INSERT INTO "events" VALUES(1,12,6.0,'told',5,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,13,6.0,'asked',6,1,'["local"]');
INSERT INTO "events" VALUES(1,14,7.0,'told',6,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,15,7.0,'asked',7,1,'["local"]');
INSERT INTO "events" VALUES(1,16,8.0,'told',7,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,17,8.0,'asked',8,1,'["local"]');
INSERT INTO "events" VALUES(1,18,9.0,'told',8,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,19,10.0,'asked',9,1,'["local"]');
INSERT INTO "events" VALUES(1,20,11.0,'told',9,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,21,11.1,'asked',10,1,'["local"]');
INSERT INTO "events" VALUES(1,22,12.1,'told',10,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,23,12.2,'asked',11,1,'["local"]');
INSERT INTO "events" VALUES(1,24,13.2,'told',11,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,25,1.32999999999999989346e+01,'asked',12,1,'["local"]');
INSERT INTO "events" VALUES(1,26,1.42999999999999989337e+01,'told',12,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,27,1.52999999999999989341e+01,'asked',13,1,'["local"]');
INSERT INTO "events" VALUES(1,28,1.62999999999999971582e+01,'told',13,1,'{"seconds": 1.0, "broken": []}');
INSERT INTO "events" VALUES(1,29,1.62999999999999971582e+01,'added',NULL,NULL,NULL);
CREATE TABLE jobs (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	task VARCHAR(200) NOT NULL, 
	params JSON NOT NULL, 
	resources JSON NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	attempts INTEGER NOT NULL, 
	created FLOAT NOT NULL, 
	not_before FLOAT, 
	ended FLOAT, 
	seconds FLOAT, 
	reason TEXT, 
	bits JSON NOT NULL, 
	predicted_cost FLOAT, 
	worth JSON NOT NULL, 
	decision INTEGER, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	UNIQUE (study_id, number)
);
INSERT INTO "jobs" VALUES(1,1,0,'f','{"x1": 0.5235142104083699, "x2": 0.43302221221027987}','["local"]','done',1,0.0,NULL,1.0,1.0,NULL,'{}',1.0,'{}',0);
INSERT INTO "jobs" VALUES(2,1,1,'c1','{"x1": 0.5235142104083699, "x2": 0.43302221221027987}','["local"]','done',1,1.0,NULL,2.0,1.0,NULL,'{}',1.0,'{}',1);
INSERT INTO "jobs" VALUES(3,1,2,'c2','{"x1": 0.5235142104083699, "x2": 0.43302221221027987}','["local"]','done',1,2.0,NULL,3.0,1.0,NULL,'{}',1.0,'{}',2);
INSERT INTO "jobs" VALUES(4,1,3,'f','{"x1": 0.023514210408369873, "x2": 0.09968887887694665}','["local"]','done',1,3.0,NULL,4.0,1.0,NULL,'{}',1.0,'{}',3);
INSERT INTO "jobs" VALUES(5,1,4,'c1','{"x1": 0.023514210408369873, "x2": 0.09968887887694665}','["local"]','done',1,4.0,NULL,5.0,1.0,NULL,'{}',1.0,'{}',4);
INSERT INTO "jobs" VALUES(6,1,5,'c2','{"x1": 0.023514210408369873, "x2": 0.09968887887694665}','["local"]','done',1,5.0,NULL,6.0,1.0,NULL,'{}',1.0,'{}',5);
INSERT INTO "jobs" VALUES(7,1,6,'f','{"x1": 0.7735142104083699, "x2": 0.7663555455436135}','["local"]','done',1,6.0,NULL,7.0,1.0,NULL,'{}',1.0,'{}',6);
INSERT INTO "jobs" VALUES(8,1,7,'c1','{"x1": 0.7735142104083699, "x2": 0.7663555455436135}','["local"]','done',1,7.0,NULL,8.0,1.0,NULL,'{}',1.0,'{}',7);
INSERT INTO "jobs" VALUES(9,1,8,'c2','{"x1": 0.7735142104083699, "x2": 0.7663555455436135}','["local"]','done',1,8.0,NULL,9.0,1.0,NULL,'{}',1.0,'{}',8);
INSERT INTO "jobs" VALUES(10,1,9,'c1','{"x1": 0.4493397131724535, "x2": 0.4673876279572002}','["local"]','done',1,10.0,NULL,11.0,1.0,NULL,'{"c1": 0.6021221702264458}',1.0,'{"f": 0.31618587149246324, "c1": 0.6021221702264488, "c2": 0.10212225170449468}',9);
INSERT INTO "jobs" VALUES(11,1,10,'f','{"x1": 0.20414104650492762, "x2": 0.6836168865238941}','["local"]','done',1,11.1,NULL,12.1,1.0,NULL,'{"f": 0.4747148207361083}',1.0,'{"f": 0.4747148207361083, "c1": 0.398215461058687, "c2": 0.09868783364455848}',10);
INSERT INTO "jobs" VALUES(12,1,11,'c1','{"x1": 0.28774714517141053, "x2": 0.4360969604799893}','["local"]','done',1,12.2,NULL,13.2,1.0,NULL,'{"c1": 0.40311257788912425}',1.0,'{"f": 0.3621291302204701, "c1": 0.40311257788910565, "c2": 0.10489559945503871}',11);
INSERT INTO "jobs" VALUES(13,1,12,'c1','{"x1": 0.10764242558363663, "x2": 0.30317854285089546}','["local"]','done',1,1.32999999999999989346e+01,NULL,1.42999999999999989337e+01,1.0,NULL,'{"c1": 0.4373857250851288}',1.0,'{"f": 0.4122689080029294, "c1": 0.43738572507181867, "c2": 0.10244811514682849}',12);
INSERT INTO "jobs" VALUES(14,1,13,'c1','{"x1": 0.002645103907783267, "x2": 0.417248105501921}','["local"]','done',1,1.52999999999999989341e+01,NULL,1.62999999999999971582e+01,1.0,NULL,'{"c1": 0.567736561161012}',1.0,'{"f": 0.45021277452355746, "c1": 0.5677365611616481, "c2": 0.028396624902619953}',13);
CREATE TABLE measurements (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	job_id INTEGER, 
	attempt INTEGER, 
	params JSON NOT NULL, 
	function VARCHAR(200) NOT NULL, 
	value FLOAT NOT NULL, 
	noise FLOAT, 
	used BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(job_id) REFERENCES jobs (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "measurements" VALUES(1,1,2,1,1,'{"x1": 0.5235142104083699, "x2": 0.43302221221027987}','f',9.56536422618649684324e-01,0.001,1);
INSERT INTO "measurements" VALUES(2,1,4,2,1,'{"x1": 0.5235142104083699, "x2": 0.43302221221027987}','c1',1.62696067081087747396e-01,0.001,1);
INSERT INTO "measurements" VALUES(3,1,6,3,1,'{"x1": 0.5235142104083699, "x2": 0.43302221221027987}','c2',1.0384246352330162022e+00,0.001,1);
INSERT INTO "measurements" VALUES(4,1,8,4,1,'{"x1": 0.023514210408369873, "x2": 0.09968887887694665}','f',1.2320308928531652215e-01,0.001,1);
INSERT INTO "measurements" VALUES(5,1,10,5,1,'{"x1": 0.023514210408369873, "x2": 0.09968887887694665}','c1',-1.75148248542435647223e+00,0.001,1);
INSERT INTO "measurements" VALUES(6,1,12,6,1,'{"x1": 0.023514210408369873, "x2": 0.09968887887694665}','c2',1.48950920933712849247e+00,0.001,1);
INSERT INTO "measurements" VALUES(7,1,14,7,1,'{"x1": 0.7735142104083699, "x2": 0.7663555455436135}','f',1.53986975595198338773e+00,0.001,1);
INSERT INTO "measurements" VALUES(8,1,16,8,1,'{"x1": 0.7735142104083699, "x2": 0.7663555455436135}','c1',1.00656558851026822765e+00,0.001,1);
INSERT INTO "measurements" VALUES(9,1,18,9,1,'{"x1": 0.7735142104083699, "x2": 0.7663555455436135}','c2',3.14374944110866638702e-01,0.001,1);
INSERT INTO "measurements" VALUES(10,1,20,10,1,'{"x1": 0.4493397131724535, "x2": 0.4673876279572002}','c1',3.8122134656011974485e-01,0.001,1);
INSERT INTO "measurements" VALUES(11,1,22,11,1,'{"x1": 0.20414104650492762, "x2": 0.6836168865238941}','f',8.87757933028821666354e-01,0.001,1);
INSERT INTO "measurements" VALUES(12,1,24,12,1,'{"x1": 0.28774714517141053, "x2": 0.4360969604799893}','c1',1.44701436399548466482e-01,0.001,1);
INSERT INTO "measurements" VALUES(13,1,26,13,1,'{"x1": 0.10764242558363663, "x2": 0.30317854285089546}','c1',-5.05556209247751908719e-01,0.001,1);
INSERT INTO "measurements" VALUES(14,1,28,14,1,'{"x1": 0.002645103907783267, "x2": 0.417248105501921}','c1',-2.3167304071695049572e-01,0.001,1);
INSERT INTO "measurements" VALUES(15,1,29,NULL,NULL,'{"x1": 0.5, "x2": 0.5}','f',1.0,NULL,1);
CREATE TABLE recommendations (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	made FLOAT NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	params JSON NOT NULL, 
	objective FLOAT NOT NULL, 
	probability FLOAT NOT NULL, 
	confident BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "recommendations" VALUES(1,1,29,1.62999999999999971582e+01,'believed','{"x1": 0.1414926544633208, "x2": 0.45536449899023446}',5.74386885666394730876e-01,9.50000000000566280355e-01,1);
CREATE TABLE resources (
	study_id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	capacity INTEGER NOT NULL, 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	UNIQUE (study_id, name)
);
INSERT INTO "resources" VALUES(1,'local',1);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	created FLOAT NOT NULL, 
	problem JSON NOT NULL, 
	settings JSON NOT NULL, 
	sequence INTEGER NOT NULL, 
	revision INTEGER NOT NULL, 
	memory JSON, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'toy',0.0,'{"minimize": "f", "constraints": ["c1 >= 0.0", "c2 >= 0.0"], "space": {"x1": {"real": [0.0, 1.0]}, "x2": {"real": [0.0, 1.0]}}, "tasks": {"f": {"measures": ["f"], "runs_on": ["local"]}, "c1": {"measures": ["c1"], "runs_on": ["local"]}, "c2": {"measures": ["c2"], "runs_on": ["local"]}}, "resources": {"local": 1}}','{"seed": 3, "initial": null, "delta": 0.05, "fantasies": 1, "attempts": 2, "pause": 1.0, "rationality": 0.3, "acquisition": {"name": "pesc", "solutions": null, "sites": "witness"}, "model": {"kernel": "matern52", "hyperparameters": "sampled", "samples": 3, "lengthscale": null, "amplitude": null, "noise": null}}',29,0,'{"decision": 13, "before": {"f": {"theta": [[-1.8491850175822115, -0.49657128403477113, -0.3401953601896272, -10.998369536244807, 0.011077055967223748], [-0.19855443229904102, 0.10346123954121017, 0.016485042607812785, -13.493439748790527, 0.25373994425442786], [-2.090258030403115, -1.774360418521151, 0.1281253733519252, -9.072801761567606, -0.15152458991435747]], "measured": 3}, "c1": {"theta": [[-0.3142184618758134, 0.7923965227961285, 0.19572773986249287, -13.854880058282, 0.0993187269272011], [0.9096380880034927, 0.29644122653964394, 1.6077477991727218, -7.671821088555943, 0.07712606186346657], [-0.3161271966862406, 0.5859407425050354, 0.46753405871719156, -14.223416768878446, 0.15319875005834893]], "measured": 3}, "c2": {"theta": [[-0.6935642244419276, 1.2049739442032847, 0.4278584303719554, -12.08709703098244, -0.29833963104917727], [1.0153006649572922, -0.6125607237616835, 0.11625685918451978, -15.235085303802453, -0.10933201283107787], [0.97488841850668, 0.1871220076136883, 0.34265301037513146, -12.482869616686562, -0.8712595134317307]], "measured": 3}}, "after": {"f": {"theta": [[-3.2076238244749304, 0.8798963363223182, -0.5393935729622507, -12.162463326221673, 0.5043910833156531], [-0.6715396976195742, -0.6017942855310998, 0.013489123332213757, -18.33493020471282, 0.23328446047978474], [-0.37295354627836264, -0.2636382891880151, 1.1911142678840887, -19.65861691257306, 2.436109540166289]], "measured": 4}, "c1": {"theta": [[0.9774641686831045, -2.497421081480424, -0.011051723210167971, -14.75841260498523, 0.24024626848825473], [1.5312491048615466, -1.0950526781422714, 0.40735842667250155, -14.987828405721608, -1.368782804908939], [0.0358124643901051, -0.8487139001961315, 0.20616620583379405, -12.903608236105587, -1.6670465635543552]], "measured": 6}, "c2": {"theta": [[-1.9830508792929595, -1.7553377184738879, -0.22595258983110975, -13.175150927962303, 0.2837887374243819], [-1.8318319179444145, -0.9074242621775139, 0.19216020070322068, -11.882441347738261, -0.5204649033781419], [-0.4944924317208292, 0.8970503961746199, 1.4678486584459987, -2.0178011764189705, -0.7087028295139628]], "measured": 3}}}');
CREATE TABLE tasks (
	study_id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	measures JSON NOT NULL, 
	runs_on JSON NOT NULL, 
	cost TEXT NOT NULL, 
	command JSON, 
	failures VARCHAR(20) NOT NULL, 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	UNIQUE (study_id, name)
);
INSERT INTO "tasks" VALUES(1,'f','["f"]','["local"]','1.0','null','model');
INSERT INTO "tasks" VALUES(1,'c1','["c1"]','["local"]','1.0','null','model');
INSERT INTO "tasks" VALUES(1,'c2','["c2"]','["local"]','1.0','null','model');
CREATE INDEX ix_jobs_state ON jobs (study_id, state);
CREATE INDEX ix_attempts_open ON attempts (study_id, outcome);
CREATE INDEX ix_measurements_sequence ON measurements (study_id, sequence);
COMMIT;
