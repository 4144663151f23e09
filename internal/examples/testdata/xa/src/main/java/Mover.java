import com.arjuna.ats.arjuna.common.arjPropertyManager;
import com.arjuna.ats.arjuna.common.RecoveryEnvironmentBean;
import com.arjuna.ats.arjuna.common.recoveryPropertyManager;
import com.arjuna.ats.arjuna.recovery.RecoveryManager;
import com.arjuna.ats.jta.common.jtaPropertyManager;
import com.arjuna.ats.jta.recovery.XAResourceRecoveryHelper;
import jakarta.transaction.TransactionManager;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.List;
import java.util.Objects;
import javax.sql.XAConnection;
import javax.transaction.xa.XAResource;
import org.postgresql.xa.PGXADataSource;

/**
 * Moves messages from a queue of one database to one of another, each in a distributed transaction. The argument says where the process
 * dies: "first.prepare" before the first database prepares, "-second.commit" after the second has committed; "recover" finishes what
 * earlier processes left.
 */
public class Mover {
  public static void main(String[] arguments) throws Exception {
    arjPropertyManager.getCoordinatorEnvironmentBean().setTransactionStatusManagerEnable(false);
    jtaPropertyManager.getJTAEnvironmentBean().setOrphanSafetyInterval(0);
    jtaPropertyManager.getJTAEnvironmentBean().setXaRecoveryNodes(List.of("1"));
    RecoveryEnvironmentBean recovery = recoveryPropertyManager.getRecoveryEnvironmentBean();
    recovery.setRecoveryBackoffPeriod(1);
    recovery.setRecoveryListener(false);
    if (arguments[0].equals("recover")) {
      recover();
    } else {
      move(arguments[0]);
    }
    System.exit(0);
  }

  private static void move(String death) throws Exception {
    TransactionManager transactions = com.arjuna.ats.jta.TransactionManager.transactionManager();
    XAConnection first = source("FIRST_URL").getXAConnection();
    XAConnection second = source("SECOND_URL").getXAConnection();
    for (int moved = 0; ; moved++) {
      transactions.begin();
      // The process dies in the third transaction: the first two show that moving works.
      boolean dies = moved == 2;
      transactions.getTransaction().enlistResource(new Mortal(first.getXAResource(), "first", dies ? death : ""));
      transactions.getTransaction().enlistResource(new Mortal(second.getXAResource(), "second", dies ? death : ""));
      byte[] body = null;
      // A connection that is asked for outside of the transaction would commit by itself.
      Connection from = first.getConnection();
      Connection to = second.getConnection();
      try (Statement take = from.createStatement();
          ResultSet rows = take.executeQuery("select body from parley.take('jobs')")) {
        if (rows.next()) {
          body = rows.getBytes(1);
        }
      }
      if (body == null) {
        transactions.rollback();
        return;
      }
      try (PreparedStatement put = to.prepareStatement("select parley.put('jobs', ?::bytea)")) {
        put.setBytes(1, body);
        put.execute();
      }
      transactions.commit();
    }
  }

  private static void recover() throws Exception {
    RecoveryManager manager = RecoveryManager.manager(RecoveryManager.DIRECT_MANAGEMENT);
    manager.initialize();
    XAConnection first = source("FIRST_URL").getXAConnection();
    XAConnection second = source("SECOND_URL").getXAConnection();
    XAResource[] resources = {first.getXAResource(), second.getXAResource()};
    for (Object module : manager.getModules()) {
      if (module instanceof com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule xa) {
        xa.addXAResourceRecoveryHelper(
            new XAResourceRecoveryHelper() {
              @Override
              public boolean initialise(String properties) {
                return true;
              }

              @Override
              public XAResource[] getXAResources() {
                return resources;
              }
            });
      }
    }
    // What has no entry in the log is rolled back when it was seen twice.
    for (int pass = 0; pass < 3; pass++) {
      manager.scan();
    }
  }

  private static PGXADataSource source(String variable) {
    PGXADataSource source = new PGXADataSource();
    source.setUrl(Objects.requireNonNull(System.getenv(variable)));
    // With wake-ups PostgreSQL refuses to prepare: "cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY".
    source.setOptions(System.getenv("SESSION_OPTIONS"));
    return source;
  }
}
