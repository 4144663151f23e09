package catalog

import "testing"

func TestRetryPolicyIsWrittenAsTheStatementsTakeIt(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"none": "false", "": "{}", "first=2s, longest=1h,attempts=30": `{"attempts":30,"first":"2s","longest":"1h"}`,
		"jitter=0.5": `{"jitter":0.5}`,
	} {
		if got, err := retryPolicy(said); got != want || err != nil {
			t.Errorf("%q gives %s, %v; want %s", said, got, err, want)
		}
	}
	for _, wrong := range []string{"often", "often=1", "first", "=1s", "2=3"} {
		if got, err := retryPolicy(wrong); err == nil {
			t.Errorf("%q gives %s", wrong, got)
		}
	}
}
