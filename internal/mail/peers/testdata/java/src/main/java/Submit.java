import jakarta.activation.DataHandler;
import jakarta.mail.Authenticator;
import jakarta.mail.Message;
import jakarta.mail.PasswordAuthentication;
import jakarta.mail.Session;
import jakarta.mail.Transport;
import jakarta.mail.internet.InternetAddress;
import jakarta.mail.internet.MimeBodyPart;
import jakarta.mail.internet.MimeMessage;
import jakarta.mail.internet.MimeMultipart;
import jakarta.mail.util.ByteArrayDataSource;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Properties;
import java.util.Random;

/** Submits three messages by Jakarta Mail: Submit HOST PORT. */
class Submit {
    static final byte[] CONTENT = new byte[2_000_000];

    public static void main(String[] arguments) throws Exception {
        new Random(7).nextBytes(CONTENT);
        Properties properties = new Properties();
        properties.put("mail.smtp.host", arguments[0]);
        properties.put("mail.smtp.port", arguments[1]);
        properties.put("mail.smtp.auth", "true");
        properties.put("mail.smtp.allow8bitmime", "true");
        properties.put("mail.mime.allowutf8", "true");

        MimeMessage attachment = message(properties, "attachment", "bob@example.org");
        MimeMultipart alternative = new MimeMultipart("alternative");
        for (String subtype : new String[] {"plain", "html"}) {
            MimeBodyPart part = new MimeBodyPart();
            part.setText(subtype.equals("plain") ? "Grüße\r\n..\r\n.\r\n" : "<p>Grüße</p>", "utf-8", subtype);
            part.setHeader("Content-Transfer-Encoding", "8bit");
            alternative.addBodyPart(part);
        }
        MimeBodyPart texts = new MimeBodyPart();
        texts.setContent(alternative);
        MimeBodyPart file = new MimeBodyPart();
        file.setDataHandler(new DataHandler(new ByteArrayDataSource(CONTENT, "application/octet-stream")));
        file.setFileName("größe.bin");
        attachment.setContent(new MimeMultipart(texts, file));
        Transport.send(attachment);

        MimeMessage utf8 = message(properties, "Grüße", "jürgen@example.org");
        utf8.setText("hello\r\n");
        Transport.send(utf8);

        properties.put("mail.smtp.dsn.notify", "SUCCESS,FAILURE");
        properties.put("mail.smtp.dsn.ret", "HDRS");
        properties.put("mail.smtp.mailextension", "ENVID=order+2B7");
        MimeMessage report = message(properties, "report", "bob@example.org");
        report.setText("hello\r\n");
        Transport.send(report);
    }

    static MimeMessage message(Properties properties, String subject, String to) throws Exception {
        Session session = Session.getInstance(properties, new Authenticator() {
            @Override
            protected PasswordAuthentication getPasswordAuthentication() {
                return new PasswordAuthentication("ann", "secret");
            }
        });
        MimeMessage message = new MimeMessage(session);
        message.setFrom("Ann <ann@example.org>");
        message.setRecipient(Message.RecipientType.TO, new InternetAddress(to));
        message.setSubject(subject, "utf-8");
        message.setHeader("X-Sum", HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(CONTENT)));
        return message;
    }
}
