variable "name" {
  description = "Put before the name of everything that is made."
  type        = string
  default     = "eventlake"

  validation {
    condition     = can(regex("^[a-z](?:[a-z0-9]|-[a-z0-9]){1,14}$", var.name)) && length(var.name) <= 15
    error_message = "Use 2 to 15 of a-z, 0-9 and single hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "location" {
  description = "Region of everything that is made, such as `westeurope`."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+[0-9]?$", var.location))
    error_message = "Write the region as Azure's tools do: in small letters, without spaces, such as westeurope."
  }
}

variable "resource_group" {
  description = "Name of the resource group; by default that of `name`."
  type        = string
  default     = null
}

variable "create_resource_group" {
  description = "Make the resource group. Set to false for one that is there."
  type        = bool
  default     = true
}

variable "storage_account" {
  description = "Name of the lake's storage account; nobody else in the world may have it."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]{3,24}$", var.storage_account))
    error_message = "A storage account is called by 3 to 24 small letters and digits: no capitals, hyphens or underscores."
  }
}

variable "container" {
  description = "Name of the lake's container."
  type        = string
  default     = "events"

  validation {
    condition     = can(regex("^[a-z0-9](?:[a-z0-9]|-[a-z0-9])*$", var.container)) && length(var.container) >= 3 && length(var.container) <= 63
    error_message = "A container is called by 3 to 63 small letters, digits and single hyphens, with a letter or digit at either end."
  }
}

variable "prefix" {
  description = "Folder of the lake in the container; empty for the container itself."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.prefix, "/") && !endswith(var.prefix, "/")
    error_message = "Without a slash at either end."
  }
}

variable "replication" {
  description = "How Azure keeps copies of the data: LRS, ZRS, GRS, RAGRS, GZRS or RAGZRS."
  type        = string
  default     = "GRS"

  validation {
    condition     = contains(["LRS", "ZRS", "GRS", "RAGRS", "GZRS", "RAGZRS"], var.replication)
    error_message = "Choose LRS, ZRS, GRS, RAGRS, GZRS or RAGZRS."
  }
}

variable "shared_access_key_enabled" {
  description = "Let the account's keys be used. Whoever has one may do everything in it; eventlake does without."
  type        = bool
  default     = false
}

variable "deleted_days" {
  description = "Days for which deleted files and containers can be brought back."
  type        = number
  default     = 30

  validation {
    condition     = var.deleted_days >= 1 && var.deleted_days <= 365 && floor(var.deleted_days) == var.deleted_days
    error_message = "Azure keeps what was deleted for 1 to 365 days."
  }
}

variable "allowed_ip_ranges" {
  description = "Public addresses, or ranges of them, from which storage account and vault may be reached; that of whoever runs Terraform among them. If this and `allowed_subnet_ids` are empty, from everywhere."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for range in var.allowed_ip_ranges : can(regex("^[0-9]{1,3}(?:\\.[0-9]{1,3}){3}(?:/(?:[0-9]|[12][0-9]|30))?$", range))])
    error_message = "Write addresses as 203.0.113.7 or 203.0.113.0/24; a range of one or two addresses is written as addresses."
  }
}

variable "allowed_subnet_ids" {
  description = "Subnets from which storage account and vault may be reached, with service endpoints for both; those of the cluster among them."
  type        = set(string)
  default     = []
}

variable "log_analytics_workspace_id" {
  description = "Log Analytics workspace that is told who reads, writes and deletes files and who reads secrets; no log is kept if this is null."
  type        = string
  default     = null
}

variable "secret_readers" {
  description = "Object ids of the users, groups or managed identities that run the `eventlake` command and may read the vault's secrets."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.secret_readers : can(regex("^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", id))])
    error_message = "An object id is a GUID: 8-4-4-4-12 digits and letters from a to f."
  }
}

variable "secret_end_date" {
  description = "When the service principal's secret ends, as 2027-01-31T00:00:00Z; by default two years after it was made."
  type        = string
  default     = null

  validation {
    condition     = var.secret_end_date == null || can(formatdate("YYYY", var.secret_end_date))
    error_message = "Write a moment as 2027-01-31T00:00:00Z."
  }
}

variable "create_metastore" {
  description = "Make a MySQL server for a Hive metastore. Set to false if tables need no catalog outside of eventlake."
  type        = bool
  default     = true
}

variable "metastore_uri" {
  description = "Address of a Hive metastore service, such as `thrift://host:9083`, for the setting `catalog.uri`. Null leaves that section out."
  type        = string
  default     = null

  validation {
    condition     = var.metastore_uri == null || can(regex("^thrift://[^/ ]+:[0-9]+$", var.metastore_uri))
    error_message = "Write it as thrift://host:9083."
  }
}

variable "metastore_service" {
  description = "Run the metastore's thrift service in a container: its `image`, a `subnet_id` delegated to `Microsoft.ContainerInstance/containerGroups`, and for an image that is not public the `registry`, its `server` and the `identity_id` of who may pull. By default there is none, and eventlake shows its tables in no metastore."
  type = object({
    image     = string
    subnet_id = string
    registry  = optional(object({ server = string, identity_id = string }))
  })
  default = null

  validation {
    condition     = var.metastore_service == null || (var.create_metastore && var.metastore_uri == null)
    error_message = "The service is for the MySQL server that create_metastore makes, and takes the place of one in metastore_uri."
  }
}

variable "metastore_database" {
  description = "Name of the metastore's database."
  type        = string
  default     = "metastore"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.metastore_database))
    error_message = "A database is called by a-z, 0-9 and _, beginning with a letter."
  }
}

variable "metastore_user" {
  description = "User of the metastore's server. Its password is made, and is in the vault."
  type        = string
  default     = "eventlake"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,31}$", var.metastore_user)) && !contains(["admin", "administrator", "root", "guest", "public", "azure_superuser", "sa"], var.metastore_user)
    error_message = "Use up to 32 of a-z, 0-9 and _, beginning with a letter, and no name that Azure keeps for itself, such as root or admin."
  }
}

variable "metastore_version" {
  description = "Version of Hive's metastore that is built into the runtime: 2.3.7 up to 9.x, 2.3.9 from 10.x to 16.x, 2.3.10 from 17.x."
  type        = string
  default     = "2.3.9"
}

variable "initialize_metastore" {
  description = "Let the cluster make the metastore's tables, and not look whether they are those of its version. Set to false once it has."
  type        = bool
  default     = true
}

variable "mysql_version" {
  description = "Version of MySQL: 8.0.21, or 5.7 where tables of an older metastore need it."
  type        = string
  default     = "8.0.21"

  validation {
    condition     = contains(["5.7", "8.0.21"], var.mysql_version)
    error_message = "Choose 8.0.21 or 5.7."
  }
}

variable "mysql_sku" {
  description = "Size of the server."
  type        = string
  default     = "B_Standard_B1ms"
}

variable "mysql_geo_redundant_backup" {
  description = "Keep the server's backups in the paired region as well."
  type        = bool
  default     = true
}

variable "mysql_allow_azure" {
  description = "Let everything within Azure reach the server, with its password: clusters without a network of your own have no fixed address."
  type        = bool
  default     = true
}

variable "mysql_firewall_rules" {
  description = "Public addresses that may reach the server, from `start` to `end`, by name."
  type        = map(object({ start = string, end = string }))
  default     = {}

  validation {
    condition     = alltrue([for rule in values(var.mysql_firewall_rules) : can(cidrhost("${rule.start}/32", 0)) && can(cidrhost("${rule.end}/32", 0))])
    error_message = "start and end are addresses such as 203.0.113.7."
  }
}

variable "metastore_subnet_id" {
  description = "Subnet for the server, delegated to `Microsoft.DBforMySQL/flexibleServers`. It has no public address then, and no firewall rules."
  type        = string
  default     = null
}

variable "metastore_private_dns_zone_id" {
  description = "Private DNS zone for a server in a subnet, linked to its network."
  type        = string
  default     = null
}

variable "create_cluster" {
  description = "Make a Databricks workspace and a cluster. Set to false for a lake that is synced elsewhere."
  type        = bool
  default     = true
}

variable "network" {
  description = "Network of your own for the cluster: `virtual_network_id`, `public_subnet_name`, `private_subnet_name` and, of both subnets, the association with a network security group. By default Databricks makes one."
  type = object({
    virtual_network_id            = string
    public_subnet_name            = string
    private_subnet_name           = string
    public_subnet_association_id  = string
    private_subnet_association_id = string
  })
  default = null
}

variable "spark_version" {
  description = "Runtime of the cluster; it must have Python 3.11 or newer: 15.4 has it, 16.4 has 3.12, both with Spark 3.5."
  type        = string
  default     = "16.4.x-scala2.12"

  validation {
    condition     = can(tonumber(regex("^([0-9]+)\\.", var.spark_version)[0])) && try(tonumber(regex("^([0-9]+)\\.", var.spark_version)[0]) >= 15, false)
    error_message = "Runtimes before 15 have an older Python than 3.11."
  }
}

variable "volume_catalog" {
  description = "Catalog of Unity Catalog in which a schema and a volume for eventlake's package are made; by default the one that Databricks makes with the workspace, and names like it."
  type        = string
  default     = null

  validation {
    condition     = var.volume_catalog == null || can(regex("^[a-z0-9_]{1,255}$", var.volume_catalog))
    error_message = "A catalog is called by a-z, 0-9 and _."
  }
}

variable "node_type" {
  description = "Machines of the cluster."
  type        = string
  default     = "Standard_DS4_v2"
}

variable "minimum_workers" {
  description = "Workers of the cluster: the fewest."
  type        = number
  default     = 2

  validation {
    condition     = var.minimum_workers >= 1
    error_message = "A cluster needs a worker."
  }
}

variable "maximum_workers" {
  description = "Workers of the cluster: the most."
  type        = number
  default     = 8

  validation {
    condition     = var.maximum_workers >= var.minimum_workers
    error_message = "The most workers are fewer than the fewest."
  }
}

variable "idle_minutes" {
  description = "Minutes after which a cluster without work ends; the next run starts it again. 0 keeps it."
  type        = number
  default     = 0

  validation {
    condition     = var.idle_minutes == 0 || (var.idle_minutes >= 10 && var.idle_minutes <= 10000)
    error_message = "0, or 10 to 10000 minutes."
  }
}

variable "cluster_permission" {
  description = "What the service principal may do with the cluster: CAN_RESTART, or CAN_MANAGE to change it as well."
  type        = string
  default     = "CAN_RESTART"

  validation {
    condition     = contains(["CAN_RESTART", "CAN_MANAGE"], var.cluster_permission)
    error_message = "Choose CAN_RESTART or CAN_MANAGE."
  }
}

variable "allow_job_clusters" {
  description = "Let the service principal make clusters, for runs that have one of their own."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that is made, beside `vendor = eventlake`."
  type        = map(string)
  default     = {}
}
