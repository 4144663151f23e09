package pb

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The Go is what protoc makes of wire.proto. Where there is no protoc this is left out.
func TestGeneratedMessagesAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		t.Skip("protoc is not installed")
	}
	name := filepath.Join(t.TempDir(), "wire.pb")
	if text, err := exec.CommandContext(t.Context(), protoc, "--descriptor_set_out="+name, "wire.proto").CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, text)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(text, set); err != nil {
		t.Fatal(err)
	}
	generated := protodesc.ToFileDescriptorProto(File_wire_proto)
	schema := set.GetFile()[0]
	for _, m := range schema.GetMessageType() {
		for _, field := range m.GetField() {
			field.JsonName = nil // protoc writes it, the generated descriptor does not
		}
	}
	for _, m := range generated.GetMessageType() {
		for _, field := range m.GetField() {
			field.JsonName = nil
		}
	}
	if !proto.Equal(schema, generated) {
		t.Errorf("wire.pb.go is not what protoc makes of wire.proto: go generate ./internal/broker/transport/wire/pb\n%v\n%v", schema, generated)
	}
}
