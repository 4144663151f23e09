// Package sqltest is the kit of the tests of the schema, which stand in sql/ beside what they test.
//
// NewBroker and NewWorld give a test a database of its own. Session and Broker run statements in it that must work, or the test ends;
// Value, Values and Equal read, Refuses requires an error of the broker. A fixture or an assertion that tests of several folders use
// stands here; one that a single folder uses stands there.
package sqltest
