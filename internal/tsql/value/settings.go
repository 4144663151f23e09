package value

// Settings are the options of a session on which values depend.
type Settings struct {
	DateOrder           DateOrder // of SET DATEFORMAT
	DateFirst           int       // the first day of the week, 1 for Monday to 7 for Sunday
	ANSIWarnings        bool
	ArithAbort          bool
	ConcatNullYieldNull bool
	ANSINulls           bool
	NumericRoundAbort   bool
}

// Defaults gives the settings of a new session of a driver or of sqlcmd in us_english.
func Defaults() *Settings {
	return &Settings{DateOrder: "mdy", DateFirst: 7, ANSIWarnings: true, ConcatNullYieldNull: true, ANSINulls: true}
}
