// Works on jobs of graphile-worker and writes a line for each: its number. Ends with its standard input. With the argument "install" it
// installs the schema and ends.
import { Logger, run, runMigrations } from "graphile-worker";

const logger = new Logger(() => () => {});
if (process.argv[2] === "install") {
  await runMigrations({ logger });
  process.exit(0);
}
const runner = await run({
  logger,
  concurrency: Number(process.env.PEER_WORKERS),
  maxPoolSize: Number(process.env.PEER_CONNECTIONS),
  noHandleSignals: true,
  taskList: {
    job: async (payload) => {
      process.stdout.write(`${payload.number}\n`);
    },
  },
});
process.stdout.write("ready\n");
process.stdin.resume();
process.stdin.on("end", async () => {
  await runner.stop();
  process.exit(0);
});
