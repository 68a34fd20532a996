variable "bucket" {
  description = "Name of the lake's bucket."
  type        = string
}

variable "suffix" {
  description = "Put after the names of the roles, the policies and the instance profile, for several lakes in one account."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9_+=,.@-]{0,32}$", var.suffix))
    error_message = "Use up to 32 of A-Z, a-z, 0-9 and _+=,.@-"
  }
}

variable "workspace_id" {
  description = "Id of the workspace: the `workspace_id` of `eventlake.toml`, or Segment's. The external id, unless `external_ids` is given."
  type        = string
  default     = null
}

variable "external_ids" {
  description = "External ids of which one must be given to assume the data lake role (setting `aws.external_id`): ids of workspaces, or of sources. By default `workspace_id`; an empty list asks for none."
  type        = list(string)
  default     = null

  validation {
    condition     = var.external_ids != null || var.workspace_id != null
    error_message = "Give workspace_id, which eventlake.toml has, or external_ids; an empty list asks for none."
  }

  validation {
    condition     = alltrue([for id in var.external_ids == null ? [] : var.external_ids : can(regex("^[A-Za-z0-9_+=,.@:/-]{2,}$", id))])
    error_message = "An external id has at least two of A-Z, a-z, 0-9 and _+=,.@:/-"
  }
}

variable "trusted_principals" {
  description = "ARNs of the users or roles that run the `eventlake` command and may assume the data lake role. By default anyone in this account whose own policy allows it."
  type        = set(string)
  default     = []
}

variable "extras" {
  description = "What the data lake role may do beyond Segment's policy: `athena` (databases for `query --athena`), `clusters` (clusters for replays with the machines and the scaling of the one that is there), `retype`. With `[]`, its policy is Segment's."
  type        = set(string)
  default     = ["athena", "clusters", "retype"]

  validation {
    condition     = length(setsubtract(var.extras, ["athena", "clusters", "retype"])) == 0
    error_message = "Extras are athena, clusters and retype."
  }
}

variable "kms_key_arn" {
  description = "KMS key of the bucket, which the roles may then use; none if this is null."
  type        = string
  default     = null
}

variable "serverless_application_arns" {
  description = "Applications of EMR Serverless that the data lake role may submit to, and act in."
  type        = set(string)
  default     = []
}

variable "tag_key" {
  description = "Key of the tag that a cluster must have for the data lake role to use it: the setting `emr.tag_key`."
  type        = string
  default     = "vendor"
}

variable "tag_value" {
  description = "The tag's value: the setting `emr.tag_value`."
  type        = string
  default     = "segment"
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
