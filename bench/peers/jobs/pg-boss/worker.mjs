// Works on jobs of pg-boss and writes a line for each: its number. Ends with its standard input. With the argument "install" it installs the
// schema with a queue that notifies, and ends.
import { PgBoss } from "pg-boss";

const queue = "jobs";
const isInstalling = process.argv[2] === "install";
const boss = new PgBoss({
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
  max: isInstalling ? 2 : Number(process.env.PEER_CONNECTIONS),
  useListenNotify: !isInstalling,
});
boss.on("error", (err) => process.stderr.write(`${err}\n`));
await boss.start();
if (isInstalling) {
  await boss.createQueue(queue, { notify: true });
  await boss.stop({ graceful: false });
  process.exit(0);
}
const options = {
  batchSize: Number(process.env.PEER_WORKERS),
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
};
await boss.work(queue, options, async (jobs) => {
  process.stdout.write(jobs.map((job) => `${job.data.number}\n`).join(""));
});
process.stdout.write("ready\n");
process.stdin.resume();
process.stdin.on("end", async () => {
  await boss.stop({ timeout: 10000 });
  process.exit(0);
});
