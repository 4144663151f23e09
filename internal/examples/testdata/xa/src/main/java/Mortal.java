import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/**
 * A resource at which the process dies, before a call ("first.prepare") or behind it ("-first.prepare"). It is not serializable, so that the
 * coordinator writes its transaction identifier to the log and asks the recovery helper for the resource.
 */
class Mortal implements XAResource {
  private final XAResource resource;
  private final String name;
  private final String death;

  Mortal(XAResource resource, String name, String death) {
    this.resource = resource;
    this.name = name;
    this.death = death;
  }

  private void at(String moment) {
    if (moment.equals(death)) {
      Runtime.getRuntime().halt(9);
    }
  }

  @Override
  public int prepare(Xid xid) throws XAException {
    at(name + ".prepare");
    int vote = resource.prepare(xid);
    at("-" + name + ".prepare");
    return vote;
  }

  @Override
  public void commit(Xid xid, boolean onePhase) throws XAException {
    at(name + ".commit");
    resource.commit(xid, onePhase);
    at("-" + name + ".commit");
  }

  @Override
  public void rollback(Xid xid) throws XAException {
    resource.rollback(xid);
  }

  @Override
  public void start(Xid xid, int flags) throws XAException {
    resource.start(xid, flags);
  }

  @Override
  public void end(Xid xid, int flags) throws XAException {
    resource.end(xid, flags);
  }

  @Override
  public void forget(Xid xid) throws XAException {
    resource.forget(xid);
  }

  @Override
  public Xid[] recover(int flag) throws XAException {
    return resource.recover(flag);
  }

  @Override
  public boolean isSameRM(XAResource other) {
    return this == other;
  }

  @Override
  public int getTransactionTimeout() throws XAException {
    return resource.getTransactionTimeout();
  }

  @Override
  public boolean setTransactionTimeout(int seconds) throws XAException {
    return resource.setTransactionTimeout(seconds);
  }
}
