variable "bucket" {
  description = "Name of the lake's bucket."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "This is not a name that S3 allows."
  }
}

variable "create_bucket" {
  description = "Make the bucket. One that is there is left as it is: `eventlake doctor --expire-staging` adds the lifecycle rule for staging."
  type        = bool
  default     = false
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

variable "suffix" {
  description = "Put after the names of the roles, the policies and the instance profile, for several lakes in one account."
  type        = string
  default     = ""
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

variable "create_cluster" {
  description = "Make an EMR cluster. Set to false for a lake that is synced elsewhere."
  type        = bool
  default     = true
}

variable "cluster_name" {
  description = "Name of the cluster, and of its security configuration."
  type        = string
  default     = "segment-data-lake"
}

variable "subnet_id" {
  description = "Subnet of the cluster; it needs a way to S3, Glue and EMR: an internet gateway, a NAT or VPC endpoints. It and its VPC must have the tag `for-use-with-amazon-emr-managed-policies = true`; see tag_subnet."
  type        = string
  default     = null

  validation {
    condition     = var.subnet_id != null || !var.create_cluster
    error_message = "A cluster needs a subnet: set subnet_id, or create_cluster = false."
  }
}

variable "tag_subnet" {
  description = "Give the subnet the tag that EMR's own policy asks for. Set to false if whoever made it does."
  type        = bool
  default     = true
}

variable "key_name" {
  description = "EC2 key pair with which one may sign in to the nodes; none if this is null."
  type        = string
  default     = null
}

variable "master_security_group" {
  description = "Security group of the master node, with the tag as in `tag_subnet`; EMR makes one if this is null."
  type        = string
  default     = null
}

variable "slave_security_group" {
  description = "Security group of core and task nodes, with the same tag; EMR makes one if this is null."
  type        = string
  default     = null
}

variable "service_access_security_group" {
  description = "Security group by which EMR reaches nodes in a private subnet, if the two above are given."
  type        = string
  default     = null
}

variable "release_label" {
  description = "EMR release; 7.x runs Spark 3.5."
  type        = string
  default     = "emr-7.10.0"
}

variable "master_instance_type" {
  description = "Instance type of the master node."
  type        = string
  default     = "m5.xlarge"
}

variable "core_instance_type" {
  description = "Instance type of core nodes. With Graviton (g) for all three, set `emr.machine` to aarch64."
  type        = string
  default     = "m5.xlarge"
}

variable "task_instance_type" {
  description = "Instance type of task nodes."
  type        = string
  default     = "m5.xlarge"
}

variable "core_instance_count" {
  description = "Core nodes; managed scaling adds none."
  type        = number
  default     = 2
}

variable "task_instance_count" {
  description = "Task nodes to begin with."
  type        = number
  default     = 2
}

variable "scaling" {
  description = "`managed`: EMR finds out how many nodes it takes, between `minimum_units` and `maximum_units`. `rules`: those of Segment's module, for core and task nodes."
  type        = string
  default     = "managed"
}

variable "minimum_units" {
  description = "Core and task nodes of managed scaling: the fewest."
  type        = number
  default     = 2
}

variable "maximum_units" {
  description = "Core and task nodes of managed scaling: the most."
  type        = number
  default     = 8
}

variable "core_instance_max_count" {
  description = "Core nodes at most, if `scaling` is `rules`."
  type        = number
  default     = 4
}

variable "task_instance_max_count" {
  description = "Task nodes at most, if `scaling` is `rules`."
  type        = number
  default     = 4
}

variable "idle_timeout" {
  description = "Seconds after which a cluster without steps ends; 0 keeps it, and protects it from being ended."
  type        = number
  default     = 0
}

variable "databases" {
  description = "Glue databases of the sources, for `create_databases` and `lake_formation`. `__segment_datalake` is always among them."
  type        = set(string)
  default     = []
}

variable "create_databases" {
  description = "Make the databases. Without it, the first sync of a source does."
  type        = bool
  default     = false
}

variable "lake_formation" {
  description = "Grant the data lake role and the nodes their databases and tables in Lake Formation, for accounts that use it. The databases must be there, or `create_databases` be true."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
