variable "name" {
  description = "Put before the name of everything that is made."
  type        = string
  default     = "eventlake"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}$", var.name))
    error_message = "Use up to 31 of a-z, 0-9 and -, beginning with a letter."
  }
}

variable "bucket" {
  description = "Name of the lake's bucket."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "This is not a name that S3 allows."
  }
}

variable "create_bucket" {
  description = "Make the bucket. Set to false for one that is there: its lifecycle rules stay as they are, and `eventlake doctor --expire-staging` adds the one for staging."
  type        = bool
  default     = true
}

variable "prefix" {
  description = "Folder of the lake in the bucket; empty for the bucket itself."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.prefix, "/") && !endswith(var.prefix, "/")
    error_message = "Without a slash at either end."
  }
}

variable "databases" {
  description = "Glue databases of the sources; each may be read and written by the job role. `__segment_datalake` is always among them."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.databases : can(regex("^[a-z][a-z0-9_]*$", name))])
    error_message = "A database is called by a-z, 0-9 and _, beginning with a letter."
  }
}

variable "create_databases" {
  description = "Let the job role make databases that are not there. Without it, make them before the first sync."
  type        = bool
  default     = true
}

variable "trusted_principals" {
  description = "ARNs of the users or roles that run the `eventlake` command and may assume the job role."
  type        = set(string)
  default     = []
}

variable "external_id" {
  description = "What they must give as external id: the setting `aws.external_id`. None is asked for if this is null."
  type        = string
  default     = null
}

variable "kms_key_arn" {
  description = "KMS key of the bucket. One is made if this is null and the bucket is made."
  type        = string
  default     = null
}

variable "access_log_bucket" {
  description = "Bucket that takes the access log of the lake's bucket; no log is kept if this is null."
  type        = string
  default     = null
}

variable "create_cluster" {
  description = "Make an EMR cluster. Set to false for a lake that is synced elsewhere."
  type        = bool
  default     = true
}

variable "subnet_id" {
  description = "Subnet of the cluster; it needs a way to S3, Glue and EMR: an internet gateway, a NAT or VPC endpoints. It and its VPC must have the tag `for-use-with-amazon-emr-managed-policies = true`; see tag_subnet."
  type        = string
  default     = null
}

variable "tag_subnet" {
  description = "Give the subnet the tag that EMR's own policy asks for. Set to false if whoever made it does."
  type        = bool
  default     = true
}

variable "release_label" {
  description = "EMR release; 7.x runs Spark 3.5."
  type        = string
  default     = "emr-7.10.0"
}

variable "primary_instance_type" {
  description = "Instance type of the primary node."
  type        = string
  default     = "m6g.xlarge"
}

variable "core_instance_type" {
  description = "Instance type of the core nodes. Set `emr.machine` to aarch64 for Graviton (g), else to x86_64."
  type        = string
  default     = "m6g.xlarge"
}

variable "minimum_units" {
  description = "Instances of managed scaling: the fewest."
  type        = number
  default     = 2
}

variable "maximum_units" {
  description = "Instances of managed scaling: the most."
  type        = number
  default     = 8

  validation {
    condition     = var.maximum_units >= var.minimum_units
    error_message = "The most instances are fewer than the fewest."
  }
}

variable "idle_timeout" {
  description = "Seconds after which a cluster without steps ends; 0 keeps it."
  type        = number
  default     = 0
}

variable "serverless_application_arns" {
  description = "Applications of EMR Serverless that the job role may submit to, and act in."
  type        = set(string)
  default     = []
}

variable "lake_formation" {
  description = "Grant the job role its tables in Lake Formation, for accounts that use it."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that is made, beside `vendor = eventlake`."
  type        = map(string)
  default     = {}
}
