package translator

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

func init() { //nolint:gochecknoinits // the views of the system are registered one by one
	Register("sys.messages", "message_id int, language_id smallint, severity tinyint, is_event_logged bit, text nvarchar(2048)",
		messagesQuery())
	// A database of PostgreSQL has one place for its tables, which is the primary file group.
	space := textOf("'PRIMARY'") + ` as name, 1 as data_space_id, ` + textOf("'FG'") + ` as type, ` +
		textOf("'ROWS_FILEGROUP'") + ` as type_desc, true as is_default, false as is_system`
	spaceColumns := "name sysname, data_space_id int, type char(2), type_desc nvarchar(60), is_default bit, is_system bit"
	Register("sys.data_spaces", spaceColumns, "select "+space)
	Register("sys.filegroups", spaceColumns+", filegroup_guid uniqueidentifier, log_filegroup_id int, is_read_only bit, "+
		"is_autogrow_all_files bit", "select "+space+", null::uuid, null::integer, false, false")
	Register("sys.extended_properties", "class tinyint, class_desc nvarchar(60), major_id int, minor_id int, name sysname, "+
		"value nvarchar(4000)", "select 0::smallint as class, "+textOf("''")+" as class_desc, 0 as major_id, 0 as minor_id, "+
		textOf("''")+" as name, "+textOf("''")+" as value where false")
	// There are no assemblies and no schema collections, so scripts that ask for one before they drop it find none.
	for name, columns := range map[string]string{
		"sys.assemblies": "name sysname, principal_id int, assembly_id int, clr_name nvarchar(4000), permission_set tinyint, " +
			"permission_set_desc nvarchar(60), is_visible bit, create_date datetime, modify_date datetime, is_user_defined bit",
		"sys.assembly_files": "assembly_id int, name nvarchar(260), file_id int, content varbinary(max)",
		"sys.xml_schema_collections": "xml_collection_id int, schema_id int, principal_id int, name sysname, create_date datetime, " +
			"modify_date datetime",
	} {
		registerEmpty(name, columns)
	}
}

// messagesQuery has the messages that Parley raises, in English.
func messagesQuery() string {
	var rows []string
	for _, m := range fault.Messages() {
		rows = append(rows, fmt.Sprintf("(%d, %d, '%s')", m.Number, m.Severity, strings.ReplaceAll(m.Text, "'", "''")))
	}
	return "select m.number as message_id, 1033::smallint as language_id, m.severity::smallint as severity, " +
		"false as is_event_logged, " + textOf("m.text") + " as text from (values " + strings.Join(rows, ", ") +
		") as m (number, severity, text)"
}
