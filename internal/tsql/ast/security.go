package ast

// Permission is GRANT, DENY or REVOKE. Page: statements/grant-transact-sql.
type Permission struct {
	StatementAt
	Verb        string // GRANT, DENY or REVOKE
	OptionFor   bool   // GRANT OPTION FOR of REVOKE
	Permissions []*PermissionItem
	Class       string // before ::, in upper case, words joined by a blank; or empty
	On          Name   // empty for a right on the database or the server
	OnColumns   []string
	Principals  []string
	HasFrom     bool // REVOKE ... FROM, in place of TO
	GrantOption bool // WITH GRANT OPTION
	Cascade     bool
	As          string
}

// PermissionItem is one right, perhaps for columns.
type PermissionItem struct {
	Place
	Name    string // in upper case, words joined by a blank: SEND, RECEIVE, ALL PRIVILEGES
	Columns []string
}

// Authorization is ALTER AUTHORIZATION. Page: statements/alter-authorization-transact-sql.
type Authorization struct {
	StatementAt
	Class string // before ::, in upper case, or empty
	On    Name
	Owner string // empty for SCHEMA OWNER
	// IsSchemaOwner is TO SCHEMA OWNER.
	IsSchemaOwner bool
}

// Principal is CREATE or ALTER of USER, LOGIN, ROLE, SERVER ROLE or APPLICATION ROLE. Page: statements/create-user-transact-sql.
type Principal struct {
	StatementAt
	Verb    string // CREATE or ALTER
	Kind    string // USER, LOGIN, ROLE, SERVER ROLE, APPLICATION ROLE
	Name    string
	Owner   string // AUTHORIZATION of a role, or empty
	From    string // LOGIN, CERTIFICATE, ASYMMETRIC KEY, WINDOWS, EXTERNAL PROVIDER, or empty
	FromFor bool   // FOR is written in place of FROM
	Source  string // what FROM names
	Without bool   // WITHOUT LOGIN
	// Change is ADD MEMBER, DROP MEMBER, ENABLE, DISABLE, ADD CREDENTIAL or DROP CREDENTIAL of ALTER, or empty.
	Change  string
	Member  string
	Options []*Option
}

// Certificate is CREATE or ALTER CERTIFICATE. Page: statements/create-certificate-transact-sql.
type Certificate struct {
	StatementAt
	Verb       string // CREATE or ALTER
	Name       string
	Owner      string
	From       string     // FILE, EXECUTABLE FILE, ASSEMBLY, BINARY, or empty
	Source     Expression // the file or the bytes; the assembly as a ColumnReference
	Removes    string     // PRIVATE KEY or ATTESTED OPTION of REMOVE, or empty
	PrivateKey []*Option  // WITH PRIVATE KEY (...)
	Encryption Expression // ENCRYPTION BY PASSWORD, or nil
	Options    []*Option  // SUBJECT, START_DATE, EXPIRY_DATE
	ActiveFor  string     // ON or OFF of ACTIVE FOR BEGIN_DIALOG, or empty
}

// Key is CREATE, ALTER, OPEN, CLOSE, BACKUP or RESTORE of a MASTER KEY, SERVICE MASTER KEY, SYMMETRIC KEY or
// ASYMMETRIC KEY. Page: statements/create-master-key-transact-sql.
type Key struct {
	StatementAt
	Verb    string // CREATE, ALTER, OPEN, CLOSE, BACKUP, RESTORE
	Kind    string // MASTER KEY, SERVICE MASTER KEY, SYMMETRIC KEY, ALL SYMMETRIC KEYS, ASYMMETRIC KEY
	Name    string // of symmetric and asymmetric keys
	Clauses []*Option
}

// BackupCertificate is BACKUP CERTIFICATE. Page: statements/backup-certificate-transact-sql.
type BackupCertificate struct {
	StatementAt
	Name       string
	File       Expression
	PrivateKey []*Option
	Options    []*Option
}

// Signature is ADD or DROP SIGNATURE. Page: statements/add-signature-transact-sql.
type Signature struct {
	StatementAt
	Verb    string // ADD or DROP
	Counter bool
	Class   string
	Module  Name
	Keys    []*Option // BY CERTIFICATE name WITH PASSWORD = '...'
}
