// Submits three messages by nodemailer: submit.mjs HOST PORT. It stands beside node_modules.
import { createHash, randomBytes } from "node:crypto";
import nodemailer from "nodemailer";

const [host, port] = process.argv.slice(2);
const transport = nodemailer.createTransport({ host, port, secure: false, ignoreTLS: true, auth: { user: "ann", pass: "secret" } });
const content = randomBytes(2_000_000);
const headers = { "X-Sum": createHash("sha256").update(content).digest("hex") };
const from = "Ann <ann@example.org>";

await transport.sendMail({
  from, to: "bob@example.org", subject: "attachment", headers, text: "Grüße\n..\n.\n", html: "<p>Grüße</p>",
  attachments: [{ filename: "größe.bin", content, contentType: "application/octet-stream" }],
});
await transport.sendMail({ from, to: "jürgen@example.org", subject: "Grüße", text: "hello\n" });
await transport.sendMail({
  from, to: "bob@example.org", subject: "report", text: "hello\n",
  dsn: { id: "order+7", return: "headers", notify: ["success", "failure"], recipient: "bob+7@example.org" },
});
transport.close();
