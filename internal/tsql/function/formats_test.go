package function

import "testing"

// FORMAT writes what .NET writes, in the culture en-US.
func TestFormatWritesAsTheDocumentationSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ call, want string }{
		{"FORMAT(date:2020-11-22; 'd')", "11/22/2020"},
		{"FORMAT(date:2020-11-22; 'D'; 'en-US')", "Sunday, November 22, 2020"},
		{"FORMAT(date:2024-08-09; 'dd/MM/yyyy'; 'en-us')", "09/08/2024"},
		{"FORMAT(datetime2:2018-01-01 01:00; 'hh:mm tt')", "01:00 AM"},
		{"FORMAT(datetime2:2018-01-01 14:00; 'hh:mm t')", "02:00 P"},
		{"FORMAT(datetime2:2018-01-01 14:00; 'HH:mm')", "14:00"},
		{"FORMAT(datetime2:2006-10-14 13:22:25.0611234; 'yyyy-MM-dd HH:mm:ss.fff')", "2006-10-14 13:22:25.061"},
		{"FORMAT(datetime2:2006-10-14 13:22:25; 'ddd d MMM yy')", "Sat 14 Oct 06"},
		{"FORMAT(datetime2:2006-10-14 13:22:25; 's')", "2006-10-14T13:22:25"},
		{"FORMAT(datetime2:2006-10-14 13:22:25; 'yyyy''Y''')", "2006Y"},
		{"FORMAT(datetime2:2006-10-14; 'q')", "NULL"},
		{"FORMAT(time:07:35; 'hh.mm')", "NULL"},
		{"FORMAT(time:07:35; 'hh:mm')", "NULL"},
		{"FORMAT(time:07:35; 'hh\\.mm')", "07.35"},
		{"FORMAT(time:07:35; 'hh\\:mm')", "07:35"},
		{"FORMAT(123456789; '###-##-####')", "123-45-6789"},
		{"FORMAT(1.0002; 'N'; 'en-us')", "1.00"},
		{"FORMAT(1.0002; 'G'; 'en-us')", "1.0002"},
		{"FORMAT(8.2784; 'C'; 'en-us')", "$8.28"},
		{"FORMAT(-1234.5; 'C')", "($1,234.50)"},
		{"FORMAT(1234567.891; 'N1')", "1,234,567.9"},
		{"FORMAT(0.125; 'P')", "12.50 %"},
		{"FORMAT(255; 'X')", "FF"},
		{"FORMAT(-1; 'x8')", "ffffffff"},
		{"FORMAT(7; 'D3')", "007"},
		{"FORMAT(1.5; 'D')", "NULL"},
		{"FORMAT(12345.678; 'E2')", "1.23E+004"},
		{"FORMAT(1234.5; '#,##0.00')", "1,234.50"},
		{"FORMAT(0.5; '#.##')", ".5"},
		{"FORMAT(0.5; '0.##')", "0.5"},
		{"FORMAT(0; '#')", ""},
		{"FORMAT(-7; '0;(0);zero')", "(7)"},
		{"FORMAT(0; '0;(0);zero')", "zero"},
		{"FORMAT(1234567; '0,,.00 M')", "1.23 M"},
		{"FORMAT(0.256; '0.0%')", "25.6%"},
		{"FORMAT(5; '\"No.\" 000')", "No. 005"},
		{"FORMAT(2.5; '0')", "3"},
		{"FORMAT('a'; 'd')", "8116 Argument data type varchar is invalid for argument 1 of format function."},
		{"FORMAT(1; 'N'; 'xx')", "9818 The culture parameter 'xx' provided in the function call is not supported."},
	} {
		if got, _ := call(t, c.call); got != c.want {
			t.Errorf("%s is %q, not %q", c.call, got, c.want)
		}
	}
}
