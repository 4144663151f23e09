{{- define "parley.name" -}}
{{- ternary .Release.Name (printf "%s-parley" .Release.Name) (contains "parley" .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "parley.selector" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "parley.labels" -}}
{{- include "parley.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "parley.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "parley.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "parley.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "parley.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "parley.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
